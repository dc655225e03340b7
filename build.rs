//! Ties the executables to the libtorch they are built with: checks its version, makes its folder their run
//! path, so that no environment variable is needed at run time, and links the CUDA half where there is one.

use std::path::Path;

/// The libtorch that `tch` 0.26 is made for.
const TORCH_VERSION: &str = "2.13.0";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Set by torch-sys, however it found libtorch: LIBTORCH, LIBTORCH_LIB, LIBTORCH_USE_PYTORCH or /usr.
    let Some(lib) = std::env::var_os("DEP_TCH_LIBTORCH_LIB") else {
        println!(
            "cargo::error=torch-sys does not say where libtorch is: run `export LIBTORCH=$(scripts/setup)` and build again"
        );
        return;
    };
    let lib = Path::new(&lib);
    println!("cargo::rerun-if-changed={}", lib.display());
    let version = header_version(lib);
    match version.as_deref() {
        Some(TORCH_VERSION) | None => {}
        Some(other) => {
            println!(
                "cargo::error=the libtorch at {} is {other}, but {TORCH_VERSION} is needed: run `unset LIBTORCH \
                 LIBTORCH_USE_PYTORCH; export LIBTORCH=$(scripts/setup)`, which finds or installs the right one, and build again",
                lib.display()
            );
            return;
        }
    }
    println!("cargo::rustc-env=SPARRING_LIBTORCH_VERSION={}", version.as_deref().unwrap_or(TORCH_VERSION));
    println!("cargo::rustc-env=SPARRING_LIBTORCH_LIB={}", lib.display());

    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", lib.display());
    if os == "linux" {
        // The older kind of run path goes before LD_LIBRARY_PATH, where a libtorch of another version may be.
        println!("cargo::rustc-link-arg=-Wl,--disable-new-dtags");
        if lib.join("libtorch_cuda.so").exists() {
            // Nothing refers to it by symbol, so that the linker would drop it, and with it every GPU.
            println!("cargo::rustc-link-arg=-L{}", lib.display());
            println!("cargo::rustc-link-arg=-Wl,--push-state,--no-as-needed,-ltorch_cuda,--pop-state");
        }
    }
}

/// The version that the headers beside the library name, `None` when they lie elsewhere.
fn header_version(lib: &Path) -> Option<String> {
    let include = lib.parent()?.join("include");
    let text = ["torch/headeronly/version.h", "torch/csrc/api/include/torch/version.h"]
        .into_iter()
        .filter_map(|header| std::fs::read_to_string(include.join(header)).ok())
        .find(|text| text.contains("#define TORCH_VERSION_MAJOR "))?;
    let part = |name: &str| {
        let define = format!("#define TORCH_VERSION_{name} ");
        text.lines().find_map(|line| line.strip_prefix(&define)).map(|number| number.trim().to_owned())
    };
    Some(format!("{}.{}.{}", part("MAJOR")?, part("MINOR")?, part("PATCH")?))
}
