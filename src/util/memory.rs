//! How the process treats memory that it has freed.

/// Makes the C library keep freed memory for the next allocation instead of giving it back to the system.
///
/// libtorch frees and allocates tensors of a megabyte several hundred times in each training step. By default glibc
/// returns much of that to the kernel, which hands it out again page by page, cleared: up to a fifth of the
/// time of training small networks (`docs/performance.md`). The price is that a process keeps the most memory it ever
/// needed. Does nothing where the C library is not glibc.
pub fn keep_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// The largest that glibc takes; larger allocations still go back.
        const MMAP_THRESHOLD: i32 = 32 << 20;
        // SAFETY: `mallopt` only sets numbers of the allocator and may be called at any time; a number out of
        // range is refused without effect.
        #[allow(unsafe_code)]
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
            libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        }
    }
}
