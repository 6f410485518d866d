"""What the Ascend AI Core's instructions mean: types, tensors, access patterns, instructions. No time."""
