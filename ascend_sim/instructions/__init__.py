"""What there is to know about each instruction: names, meaning, operands, constraints, price, an example."""
