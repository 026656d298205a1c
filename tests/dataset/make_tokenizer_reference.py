#!/usr/bin/env python3
"""Writes tests/dataset/values/tokenizer_*.json and what the Python package `tokenizers` makes of
texts with them: a line a text, in hex, a colon, and its tokens. Needs `pip install tokenizers`."""

from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = Path(__file__).parent / "values"
CORPUS = """The quick brown fox jumps over the lazy dog. It's the fox's day, isn't it? They'll say we've
been here before; I'd rather not. The dogs, the foxes and the 123 quick brown cats were there in 1999.
  def quick(x):\n      return x * 2  # twice\n\tif x == 10: print("quick")\n
Über den Flüssen, größer als Bäume; déjà vu à l'été. Привет мир, как дела? 你好世界，你好。 ½ ² Ⅷ ١٢٣
the the the the quick quick brown brown there then them these those thing think thinking thinks""" * 3
TEXTS = [
    "", " ", "  ", "a", " a", "  a", "   a b", "Hello world", "the quick brown fox", "it's they'll WE'VE I'd 'tis",
    "line one\nline two\r\n\r\n  three\t\tfour  ", "trailing spaces   ", "\n\n\n", " \n x", "123 456abc abc456 ½²Ⅷ",
    "Über größer déjà vu", "Привет мир", "你好世界，你好", "🙂 emoji 👩‍👩‍👧‍👦 done", "a\u00a0b\u3000c\u2003d", "!!!...??? -- ==",
    "x <|end|> y", "x<|end|><|end|>y", "<|end|>", " [MASK] b", "a  [MASK]  b", "x[MASK]y", "word wordy sword word_ word.",
    "caf\u00e9 cafe\u0301", "\u0000\u0001\u007f", "don't DON'T don't", "the" * 50, "thinking thinks thing", "a'sb 's's 'll",
    "\u200b\u200d\ufeff", "१२३ ߁߂", "ʰ ª º ǅ", "  \u2028  x", "_under_score_ 9_9",
]


def trained(path, add_prefix_space=False):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=480, min_frequency=2, special_tokens=["<|end|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    t.train_from_iterator([CORPUS], trainer)
    return t


def write(name, t):
    t.save(str(HERE / f"tokenizer_{name}.json"), pretty=False)
    lines = []
    for text in TEXTS:
        ids = t.encode(text).ids
        lines.append(f"{text.encode().hex()}:{' '.join(map(str, ids))}")
    (HERE / f"tokenizer_{name}.txt").write_text("\n".join(lines) + "\n")


def main():
    HERE.mkdir(exist_ok=True)
    (HERE / "tokenizer_corpus.txt").write_text(CORPUS, newline="")
    write("plain", trained("plain"))
    prefix = trained("prefix", add_prefix_space=True)
    prefix.add_tokens([AddedToken("word", single_word=True, normalized=False)])
    prefix.add_special_tokens([AddedToken("[MASK]", lstrip=True, rstrip=True)])
    write("prefix", prefix)


main()
