"""The decoder in torch: plain, and in fixed shapes with CUDA graphs."""
