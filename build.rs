//! Makes the binary find libtorch by itself: its folder becomes a run path of every executable.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    println!("cargo:rerun-if-env-changed=LIBTORCH_LIB");
    let root = std::env::var("LIBTORCH_LIB").or_else(|_| std::env::var("LIBTORCH"));
    if let Ok(root) = root {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{root}/lib");
    }
}
