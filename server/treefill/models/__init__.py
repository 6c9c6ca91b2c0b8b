"""Getting models, keeping them, and opening them."""
