"""The web side: HTTP in several dialects, over the same calls as the command line.

    dragoman serve runs/en-zh opus-mt-en-de --port 8000

A request is read within limits (`web`), priced in padded tokens and admitted or refused
(`admission`), and answered by a thread that waits on the scheduler of its model (`work`), where its
sentences share batches with those of other clients. Models are loaded, leased and let go of by
`shelf`; each dialect (`v1`, `libretranslate`, `deepl`, `openai`) is a list of endpoints for `app`.
"""
