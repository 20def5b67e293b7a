"""Vocabularies: from a tokenizer's file to a table that gives every token id its exact bytes.

formats       recognise a file by its content, hand it to its reader
huggingface   tokenizer.json: the model's tokens and the added tokens, at the ids that a loader gives them
decoders      a tokenizer.json's decoder: token string -> bytes, or a refusal by name
tekken        Mistral's tekken.json
tiktoken      rank files
configs       stop tokens and logits width from the files beside a tokenizer.json
stop_tokens   stop tokens by well-known name, and from a post-processor
table         `TokenTable`, what a reader returns, and `Vocabulary`, what everyone else uses
train         trains the small vocabulary that the package ships
"""

from maskwright.compiler.vocabulary.table import Vocabulary

__all__ = ["Vocabulary"]
