"""`treefill bench`: how long this machine takes, ours and its peers taking turns in one run.

Reading order: `contenders` (what can be timed), `driver` and `llama_server` (peers as that), `rounds` (taking turns),
`speed` (decode, prefill, load), `keystrokes` (typing into servers), `report`. Every answer is checked before it is
timed. Whether completions are good is `evaluation`'s business; what only a checkout can do is in `bench/`.
"""
