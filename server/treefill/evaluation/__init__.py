"""How good the completions are, and how close int8 stays to float32: measured, not guessed.

`infill` fills holes in problems that bring their own tests, `keystrokes` counts what each keystroke costs,
and `fidelity` compares logits. They use the product's own journey and engines; no model and no tensor lives
here.
"""
