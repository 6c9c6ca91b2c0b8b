"""Tokens in, tokens out. `engine.api` is the front door; backends live in folders of their own."""
