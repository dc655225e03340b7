//! One thread's copy of the network: it shares the weights with the others and has gradients and batch statistics
//! of its own.

use tch::{Device, Kind, TchError, Tensor};

use crate::net::{NetSpec, TorchError, TorchNet, Weights, has_amx};
use crate::train::batch::{BatchView, Totals};
use crate::train::layout::Layout;
use crate::train::loss::{Logits, LossWeights, Sums, loss};

/// A network for one shard of each batch.
#[derive(Debug)]
pub(crate) struct Replica {
    net: TorchNet,
    /// Handles of the network's trainable tensors in the order of the layout.
    parameters: Vec<Tensor>,
    /// Running statistics, flat; the network's buffers are views of it.
    pub buffers: Tensor,
    /// Gradients of the last shard, flat.
    pub gradient: Tensor,
    /// The views of `gradient` in the order of the layout.
    views: Vec<Tensor>,
}

impl Replica {
    /// A network whose trainable tensors are views of `values` (flat): it sees every change made there.
    pub(crate) fn new(
        spec: &NetSpec,
        weights: &Weights,
        layout: &Layout,
        values: &Tensor,
        precision: Kind,
    ) -> Result<Self, TorchError> {
        let device = values.device();
        let _guard = tch::no_grad_guard();
        let mut net = TorchNet::new(spec, weights, device)?;
        net.set_precision(precision);
        let buffers = values.f_narrow(0, layout.trainable(), layout.total() - layout.trainable())?.f_detach_copy()?;
        bind(&net, layout, values, &buffers)?;
        let gradient = Tensor::f_zeros([layout.trainable()], (Kind::Float, device))?;
        let views = layout.parameters().map(|entry| layout.view(&gradient, entry)).collect::<Result<_, _>>()?;
        let named = net.parameters();
        let handle = |name: &str| {
            let found = named.iter().find(|parameter| parameter.name == name);
            found.expect("the layout is made of the network's tensors").tensor.shallow_clone()
        };
        let parameters = layout.parameters().map(|entry| handle(&entry.name)).collect();
        Ok(Self { net, parameters, buffers, gradient, views })
    }

    /// Loss sums and gradients of one shard of a batch whose total weights are `totals`; starts from the running
    /// statistics `buffers` (flat).
    pub(crate) fn run(
        &mut self,
        shard: BatchView<'_>,
        totals: Totals,
        weights: LossWeights,
        buffers: &Tensor,
    ) -> Result<Sums, TorchError> {
        tch::no_grad(|| self.buffers.f_copy_(buffers))?;
        let loss = tch::with_grad(|| {
            let planes = shard.planes_on(self.net.spec(), self.net.device())?;
            let heads = self.net.forward(&planes, true)?;
            let loss = loss(&Logits::of(&heads)?, shard, totals, weights);
            // Logits times constants: their derivatives by the weights are those of the loss.
            let stand_in = |head: &Tensor, gradient: &[f32]| {
                let gradient = Tensor::f_from_slice(gradient)?.f_to_device(self.net.device())?;
                head.f_view([-1])?.f_dot(&gradient)
            };
            let mut losses =
                vec![stand_in(&heads.policy, &loss.gradient.policy)?, stand_in(&heads.value, &loss.gradient.value)?];
            for (head, gradient) in [(&heads.ending, &loss.gradient.ending), (&heads.reply, &loss.gradient.reply)] {
                if let Some(head) = head {
                    losses.push(stand_in(head, gradient)?);
                }
            }
            let gradients = Tensor::f_run_backward(&losses, &self.parameters, false, false)?;
            tch::no_grad(|| {
                for (view, gradient) in self.views.iter_mut().zip(&gradients) {
                    // A parameter that the loss does not depend on (a head's bias without any slot) has no gradient.
                    if gradient.defined() { view.f_copy_(gradient)? } else { drop(view.f_zero_()?) }
                }
                Ok::<(), TchError>(())
            })?;
            Ok::<_, TorchError>(loss)
        })?;
        Ok(loss.sums)
    }
}

/// Makes the tensors of `net` views of flat vectors: the trainable ones of `values`, the others of `buffers`, which
/// begins where the trainable numbers end.
pub(crate) fn bind(net: &TorchNet, layout: &Layout, values: &Tensor, buffers: &Tensor) -> Result<(), TchError> {
    for mut parameter in net.parameters() {
        let entry = layout.parameters().find(|entry| entry.name == parameter.name);
        let entry = entry.expect("the layout is made of the network's tensors");
        parameter.tensor.f_set_data(&layout.view(values, entry)?)?;
    }
    for (name, mut tensor) in net.buffers() {
        let entry = layout.buffers().find(|entry| entry.name == name);
        let entry = entry.expect("the layout is made of the network's tensors");
        let flat = buffers.f_narrow(0, entry.offset - layout.trainable(), entry.len)?;
        tensor.f_set_data(&flat.f_view(entry.shape.as_slice())?)?;
    }
    Ok(())
}

/// What `precision: auto` means on `device`: bfloat16 on CPUs with AMX, else float32. AVX-512's bfloat16
/// instructions alone do not count: with them libtorch's convolutions train at 0.6 to 0.75 times the speed of float32
/// (measured for 6x64 on 9x9). On GPUs float32 may multiply in TF32, and older ones have no bfloat16 at all.
pub(crate) fn automatic_precision(device: Device) -> Kind {
    if device == Device::Cpu && has_amx() { Kind::BFloat16 } else { Kind::Float }
}
