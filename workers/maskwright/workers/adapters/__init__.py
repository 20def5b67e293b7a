"""Adapters to inference engines. Each module needs its engine, and is imported by whoever has it.

history.py        where a sequence stands, by the tokens that it has generated
sources.py        which artifact a request's schema, pattern, grammar or name belongs to
endings.py        how a request that can't go on is ended
plugins.py        what engines call when they start
transformers.py   a `LogitsProcessor` for Hugging Face's `generate()`
vllm.py           vLLM's structured-output backend and logits processor
sglang.py         SGLang's grammar backend

`README.md` beside this file has what an engine's user pastes.
"""
