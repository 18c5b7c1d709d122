"""Kernels on emulated Arm processors against those on this machine: `make test-arm`."""
