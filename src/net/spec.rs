//! What a network looks like: the shapes it connects and its architecture, and from them every tensor it owns.
//!
//! The list [`NetSpec::tensors`] is the one description that weights, checkpoints, libtorch and ONNX follow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::game::{Game, PlaneShape, PolicyShape};

/// Added to a variance before its root is taken in batch normalisation (Ioffe and Szegedy 2015, algorithm 1).
pub const NORM_EPSILON: f64 = 1e-5;

/// Values of the value head: win, draw, loss of the player to move.
pub const VALUE_OUTPUTS: usize = 3;

/// A network: what goes in, what comes out, and how it is built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetSpec {
    /// Shape of an encoded position.
    pub input: PlaneShape,
    /// How the policy head's slots lie on the board.
    pub policy: PolicyShape,
    /// The layers between.
    pub architecture: Architecture,
    /// Heads that only training has. Checkpoints hold networks without them.
    #[serde(skip)]
    pub auxiliary: AuxiliaryHeads,
}

/// Heads whose targets teach the trunk what matters, and which nobody asks when it plays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuxiliaryHeads {
    /// Slots of the head that foresees the final position ([`Game::ending_shape`]).
    pub ending: PolicyShape,
    /// Whether there is a head that foresees the opponent's next move, of the policy's shape.
    pub reply: bool,
}

impl AuxiliaryHeads {
    /// Whether there is one.
    pub fn any(&self) -> bool {
        self.reply || self.ending != PolicyShape::default()
    }
}

/// How a network is built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Architecture {
    /// Residual convolutional network: the choice for every game on a board.
    Resnet(Resnet),
    /// Fully connected layers: for tiny games, and for short runs, as it plays ten times as many games an hour.
    Mlp(Mlp),
}

impl Default for Architecture {
    fn default() -> Self {
        Self::Resnet(Resnet::default())
    }
}

/// A residual network (He et al. 2016, as AlphaGo Zero uses it): a 3x3 convolution, then blocks of two 3x3
/// convolutions with batch normalisation and a skip connection, then a policy and a value head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Resnet {
    /// Residual blocks.
    #[schemars(range(min = 0, max = 80), extend("x-unit" = "blocks", "x-paper" = "19 (AlphaZero)"))]
    pub blocks: usize,
    /// Channels of the trunk; multiples of 16 run best.
    #[schemars(range(min = 1, max = 1024), extend("x-unit" = "channels", "x-paper" = "256 (AlphaZero)"))]
    pub channels: usize,
    /// Whether every second block also sees the mean and the maximum of each channel over the whole board
    /// (after KataGo's global pooling, Wu 2019, section 3.3).
    #[schemars(extend("x-paper" = "false (AlphaZero), true (KataGo)"))]
    pub global_pooling: bool,
    /// Channels of the policy head's first layer.
    #[schemars(range(min = 1, max = 1024), extend("x-unit" = "channels", "x-paper" = "2 (AlphaGo Zero)"))]
    pub policy_channels: usize,
    /// Channels of the value head's first layer.
    #[schemars(range(min = 1, max = 1024), extend("x-unit" = "channels", "x-paper" = "1 (AlphaGo Zero)"))]
    pub value_channels: usize,
    /// Units of the value head's hidden layer.
    #[schemars(range(min = 1, max = 4096), extend("x-unit" = "units", "x-paper" = "256 (AlphaGo Zero)"))]
    pub value_hidden: usize,
}

impl Default for Resnet {
    fn default() -> Self {
        Self {
            blocks: 6,
            channels: 64,
            global_pooling: false,
            policy_channels: 32,
            value_channels: 8,
            value_hidden: 64,
        }
    }
}

impl Resnet {
    /// Whether block `block` (from 0) has the global pooling branch.
    pub fn pools(&self, block: usize) -> bool {
        self.global_pooling && block % 2 == 1
    }
}

/// Fully connected layers with ReLU, then a linear policy and a linear value head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mlp {
    /// Units of each hidden layer, from input to output: 1 to 16 layers of 1 to 8192 units.
    #[schemars(length(min = 1, max = 16), inner(range(min = 1, max = 8192)), extend("x-unit" = "units"))]
    pub hidden: Vec<usize>,
}

impl Default for Mlp {
    fn default() -> Self {
        Self { hidden: vec![128, 128] }
    }
}

/// A network that cannot be: names the field, its value and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the network's `{field}` is {value}; allowed is {allowed}")]
pub struct SpecError {
    /// Path of the field inside the description.
    pub field: String,
    /// What it holds.
    pub value: String,
    /// What it may hold.
    pub allowed: String,
}

/// What a tensor is for; decides its first values and whether weight decay applies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// Weights of a convolution or linear layer with this many inputs per output. First values are normal with
    /// standard deviation `gain * sqrt(2 / fan_in)` (He et al. 2015, equation 10, times `gain`).
    Kernel {
        /// Inputs of each output.
        fan_in: usize,
        /// Factor on He's standard deviation; small in the layers that write logits.
        gain: f32,
    },
    /// Added to a layer's output; zero at first.
    Bias,
    /// Factor of a batch normalisation; one at first.
    Scale,
    /// Running mean of a batch normalisation; a buffer, zero at first.
    Mean,
    /// Running variance of a batch normalisation; a buffer, one at first, never negative.
    Variance,
}

impl Role {
    /// Whether the optimizer changes it (the others are buffers that training updates itself).
    pub fn is_trainable(self) -> bool {
        !matches!(self, Role::Mean | Role::Variance)
    }

    /// Whether weight decay applies: to kernels only.
    pub fn decays(self) -> bool {
        matches!(self, Role::Kernel { .. })
    }
}

/// One tensor of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorInfo {
    /// Its name, as in PyTorch's state dictionaries: `blocks.0.conv1.weight`.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// What it is for.
    pub role: Role,
}

/// Whether a tensor of this name belongs to an auxiliary head.
pub fn is_auxiliary(tensor: &str) -> bool {
    ["auxiliary.", "ending.", "reply."].iter().any(|head| tensor.starts_with(head))
}

impl TensorInfo {
    /// Whether it belongs to an auxiliary head.
    pub fn is_auxiliary(&self) -> bool {
        is_auxiliary(&self.name)
    }

    /// Numbers it holds.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it holds nothing (no valid network has such a tensor).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Gain of the layers that write logits: the first policy is near uniform, the first value near even.
const HEAD_GAIN: f32 = 0.1;

impl NetSpec {
    /// The network of `architecture` for `game`.
    pub fn for_game<G: Game>(game: &G, architecture: Architecture) -> Self {
        let auxiliary = AuxiliaryHeads::default();
        Self { input: game.plane_shape(), policy: game.policy_shape(), architecture, auxiliary }
    }

    /// The same network as it plays.
    pub fn played(&self) -> Self {
        Self { auxiliary: AuxiliaryHeads::default(), ..self.clone() }
    }

    /// Slots of the policy head.
    pub fn action_count(&self) -> usize {
        self.policy.slots(self.input.cells())
    }

    /// Slots of the head that foresees the final position, 0 without it.
    pub fn ending_count(&self) -> usize {
        self.auxiliary.ending.slots(self.input.cells())
    }

    /// The auxiliary heads there are, with their shapes.
    pub fn auxiliary_heads(&self) -> impl Iterator<Item = (&'static str, PolicyShape)> {
        let ending = Some(("ending", self.auxiliary.ending)).filter(|(_, shape)| *shape != PolicyShape::default());
        ending.into_iter().chain(self.auxiliary.reply.then_some(("reply", self.policy)))
    }

    /// Checks every number against its range, so that nothing that is built from a valid description can overflow.
    ///
    /// # Errors
    /// Names the first field that is out of range.
    pub fn validate(&self) -> Result<(), SpecError> {
        check("input.channels", self.input.channels, 1, 1024)?;
        check("input.height", self.input.height, 1, 64)?;
        check("input.width", self.input.width, 1, 64)?;
        check("policy.planes", self.policy.planes, 0, 1024)?;
        check("policy.flat", self.policy.flat, 0, 65_536)?;
        check("policy (planes x cells + flat)", self.action_count(), 1, 65_536)?;
        check("ending (planes x cells + flat)", self.ending_count(), 0, 65_536)?;
        match &self.architecture {
            Architecture::Resnet(net) => {
                check("blocks", net.blocks, 0, 80)?;
                check("channels", net.channels, 1, 1024)?;
                check("policy_channels", net.policy_channels, 1, 1024)?;
                check("value_channels", net.value_channels, 1, 1024)?;
                check("value_hidden", net.value_hidden, 1, 4096)
            }
            Architecture::Mlp(net) => {
                check("hidden (number of layers)", net.hidden.len(), 1, 16)?;
                net.hidden.iter().enumerate().try_for_each(|(i, &units)| check(&format!("hidden[{i}]"), units, 1, 8192))
            }
        }
    }

    /// Every tensor of the network, in the order in which data flows.
    pub fn tensors(&self) -> Vec<TensorInfo> {
        let mut list = TensorList::default();
        match &self.architecture {
            Architecture::Resnet(net) => self.resnet_tensors(net, &mut list),
            Architecture::Mlp(net) => self.mlp_tensors(net, &mut list),
        }
        list.0
    }

    fn resnet_tensors(&self, net: &Resnet, list: &mut TensorList) {
        let cells = self.input.cells();
        list.conv("stem", "", net.channels, self.input.channels, 3);
        for block in 0..net.blocks {
            let name = format!("blocks.{block}");
            list.conv(&name, "1", net.channels, net.channels, 3);
            if net.pools(block) {
                let shape = vec![net.channels, 2 * net.channels];
                list.kernel(format!("{name}.pool.weight"), shape, 2 * net.channels, 1.0);
            }
            list.conv(&name, "2", net.channels, net.channels, 3);
        }
        list.conv("policy", "", net.policy_channels, net.channels, 1);
        list.slots("policy", self.policy, net.policy_channels, cells);
        list.conv("value", "", net.value_channels, net.channels, 1);
        list.linear("value.hidden", net.value_hidden, net.value_channels * cells, 1.0);
        list.linear("value.out", VALUE_OUTPUTS, net.value_hidden, HEAD_GAIN);
        if self.auxiliary.any() {
            list.conv("auxiliary", "", net.policy_channels, net.channels, 1);
        }
        for (name, shape) in self.auxiliary_heads() {
            list.slots(name, shape, net.policy_channels, cells);
        }
    }

    fn mlp_tensors(&self, net: &Mlp, list: &mut TensorList) {
        let mut inputs = self.input.len();
        for (layer, &units) in net.hidden.iter().enumerate() {
            list.linear(&format!("layers.{layer}"), units, inputs, 1.0);
            inputs = units;
        }
        list.linear("policy.out", self.action_count(), inputs, HEAD_GAIN);
        list.linear("value.out", VALUE_OUTPUTS, inputs, HEAD_GAIN);
        for (name, shape) in self.auxiliary_heads() {
            list.linear(&format!("{name}.out"), shape.slots(self.input.cells()), inputs, HEAD_GAIN);
        }
    }

    /// Trainable numbers.
    pub fn parameter_count(&self) -> usize {
        self.tensors().iter().filter(|tensor| tensor.role.is_trainable()).map(TensorInfo::len).sum()
    }

    /// Floating-point operations to evaluate one position: two for each multiplication in a convolution or linear
    /// layer (normalisation, bias and activations are folded in or negligible).
    pub fn flops(&self) -> u64 {
        let per_cell = self.input.cells() as u64;
        let cost = |tensor: &TensorInfo| {
            let times = if tensor.shape.len() == 4 { per_cell } else { 1 };
            2 * times * tensor.len() as u64
        };
        self.tensors().iter().filter(|tensor| tensor.role.decays()).map(cost).sum()
    }
}

impl std::fmt::Display for NetSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.architecture {
            Architecture::Resnet(net) => {
                write!(f, "residual network {}x{}", net.blocks, net.channels)?;
                if net.global_pooling {
                    write!(f, " with global pooling")?;
                }
            }
            Architecture::Mlp(net) => write!(f, "fully connected network {:?}", net.hidden)?,
        }
        let PlaneShape { channels, height, width } = self.input;
        write!(f, ", {channels} planes of {height}x{width}, {} actions", self.action_count())
    }
}

fn check(field: &str, value: usize, low: usize, high: usize) -> Result<(), SpecError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(SpecError { field: field.into(), value: value.to_string(), allowed: format!("{low} to {high}") })
}

#[derive(Default)]
struct TensorList(Vec<TensorInfo>);

impl TensorList {
    fn push(&mut self, name: String, shape: Vec<usize>, role: Role) {
        self.0.push(TensorInfo { name, shape, role });
    }

    fn kernel(&mut self, name: String, shape: Vec<usize>, fan_in: usize, gain: f32) {
        self.push(name, shape, Role::Kernel { fan_in, gain });
    }

    /// A convolution without bias, `{name}.conv{suffix}`, and its batch normalisation, `{name}.norm{suffix}`.
    fn conv(&mut self, name: &str, suffix: &str, outputs: usize, inputs: usize, size: usize) {
        let shape = vec![outputs, inputs, size, size];
        self.kernel(format!("{name}.conv{suffix}.weight"), shape, inputs * size * size, 1.0);
        for (part, role) in [
            ("weight", Role::Scale),
            ("bias", Role::Bias),
            ("running_mean", Role::Mean),
            ("running_var", Role::Variance),
        ] {
            self.push(format!("{name}.norm{suffix}.{part}"), vec![outputs], role);
        }
    }

    /// The last layers of a head with so many input channels: `{name}.spatial` for slots of cells, `{name}.flat` for others.
    fn slots(&mut self, name: &str, shape: PolicyShape, inputs: usize, cells: usize) {
        if shape.planes > 0 {
            self.kernel(format!("{name}.spatial.weight"), vec![shape.planes, inputs, 1, 1], inputs, HEAD_GAIN);
            self.push(format!("{name}.spatial.bias"), vec![shape.planes], Role::Bias);
        }
        if shape.flat > 0 {
            self.linear(&format!("{name}.flat"), shape.flat, inputs * cells, HEAD_GAIN);
        }
    }

    fn linear(&mut self, name: &str, outputs: usize, inputs: usize, gain: f32) {
        self.kernel(format!("{name}.weight"), vec![outputs, inputs], inputs, gain);
        self.push(format!("{name}.bias"), vec![outputs], Role::Bias);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(architecture: Architecture) -> NetSpec {
        NetSpec {
            input: PlaneShape { channels: 8, height: 9, width: 9 },
            policy: PolicyShape { planes: 1, flat: 2 },
            architecture,
            auxiliary: AuxiliaryHeads::default(),
        }
    }

    #[test]
    fn counts_match_a_count_by_hand() {
        let small = Resnet {
            blocks: 2,
            channels: 4,
            global_pooling: true,
            policy_channels: 3,
            value_channels: 2,
            value_hidden: 5,
        };
        let spec_small = spec(Architecture::Resnet(small));
        let stem = 4 * 8 * 9 + 2 * 4;
        let blocks = 4 * (4 * 4 * 9 + 2 * 4) + 4 * 8;
        let policy = 3 * 4 + 2 * 3 + (3 + 1) + (2 * 3 * 81 + 2);
        let value = 2 * 4 + 2 * 2 + (5 * 2 * 81 + 5) + (3 * 5 + 3);
        assert_eq!(spec_small.parameter_count(), stem + blocks + policy + value);
        let per_cell = 4 * 8 * 9 + 4 * (4 * 4 * 9) + 3 * 4 + 3 + 2 * 4;
        let once = 4 * 8 + 2 * 3 * 81 + 5 * 2 * 81 + 3 * 5;
        assert_eq!(spec_small.flops(), 2 * (81 * per_cell + once) as u64);

        let mlp = spec(Architecture::Mlp(Mlp { hidden: vec![10, 7] }));
        let a = 83;
        assert_eq!(mlp.action_count(), a);
        assert_eq!(mlp.parameter_count(), 648 * 10 + 10 + 10 * 7 + 7 + 7 * a + a + 7 * 3 + 3);

        let auxiliary = AuxiliaryHeads { ending: PolicyShape { planes: 2, flat: 4 }, reply: true };
        let both = [&spec_small, &mlp].map(|spec| NetSpec { auxiliary, ..spec.clone() });
        let e = 2 * 81 + 4;
        assert_eq!(both[0].ending_count(), e);
        let of_cells = |planes: usize, flat: usize| (planes * 3 + planes) + flat * (3 * 81 + 1);
        let heads = 3 * 4 + 2 * 3 + of_cells(2, 4) + of_cells(1, 2);
        assert_eq!(both[0].parameter_count(), spec_small.parameter_count() + heads);
        assert_eq!(both[1].parameter_count(), mlp.parameter_count() + 8 * (e + a));
        assert_eq!(both.map(|spec| spec.played()), [spec_small, mlp]);
    }

    #[test]
    fn names_are_unique_and_pooling_sits_in_every_second_block() {
        let net = Resnet { blocks: 4, global_pooling: true, ..Resnet::default() };
        let tensors = spec(Architecture::Resnet(net)).tensors();
        let names: std::collections::BTreeSet<_> = tensors.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names.len(), tensors.len());
        let pools: Vec<_> = names.iter().filter(|n| n.contains("pool")).collect();
        assert_eq!(pools, [&"blocks.1.pool.weight", &"blocks.3.pool.weight"]);
        assert!(tensors.iter().all(|t| !t.is_empty()));
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let mut bad = spec(Architecture::Resnet(Resnet { channels: 0, ..Resnet::default() }));
        assert_eq!(bad.validate().unwrap_err().to_string(), "the network's `channels` is 0; allowed is 1 to 1024");
        bad.architecture = Architecture::Mlp(Mlp { hidden: vec![8, 0] });
        assert_eq!(bad.validate().unwrap_err().field, "hidden[1]");
        bad.architecture = Architecture::Mlp(Mlp { hidden: vec![] });
        assert_eq!(bad.validate().unwrap_err().field, "hidden (number of layers)");
        bad.architecture = Architecture::default();
        bad.policy = PolicyShape { planes: 0, flat: 0 };
        assert!(bad.validate().unwrap_err().field.starts_with("policy"));
        bad.policy = PolicyShape { planes: 1, flat: 0 };
        assert_eq!(bad.validate(), Ok(()));
        bad.input.height = usize::MAX;
        assert_eq!(bad.validate().unwrap_err().field, "input.height");
    }

    #[test]
    fn reads_as_a_config_section_with_defaults_and_strict_keys() {
        let parse = serde_json::from_str::<Architecture>;
        let net = parse(r#"{"type": "resnet", "blocks": 4, "channels": 32}"#).unwrap();
        assert_eq!(net, Architecture::Resnet(Resnet { blocks: 4, channels: 32, ..Resnet::default() }));
        assert_eq!(parse(r#"{"type": "mlp"}"#).unwrap(), Architecture::Mlp(Mlp::default()));
        assert!(parse(r#"{"type": "resnet", "block": 4}"#).unwrap_err().to_string().contains("block"));
        assert!(parse(r#"{"type": "transformer"}"#).is_err());
        let text = serde_json::to_string(&spec(net.clone())).unwrap();
        assert_eq!(serde_json::from_str::<NetSpec>(&text).unwrap(), spec(net));
        let schema = serde_json::to_string(&schemars::schema_for!(Architecture)).unwrap();
        assert!(schema.contains("Residual blocks.") && schema.contains(r#""maximum":80"#), "{schema}");
    }
}
