//! To come.

pub mod zener;
