"""Machine code that numba compiled in an earlier process, loaded without numba and LLVM."""
