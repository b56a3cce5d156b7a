"""The HTTP server: several API dialects over the same calls as the command line.

    dragoman serve runs/en-zh opus-mt-en-de --port 8000

A request is read within limits (`web`), priced in padded tokens and admitted or refused
(`admission`). A thread then waits for its answers from the scheduler of its model (`work`), where
its sentences share batches with those of other clients. `shelf` loads, leases and unloads models.
Each dialect (`v1`, `libretranslate`, `deepl`, `openai`) is a list of endpoints for `app`.
"""
