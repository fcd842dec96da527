"""Fine-tunes a classifier with torch and transformers, for `bench_tasks.py`.

    python tools/torch_finetuning.py ORDER

ORDER is JSON: `model` (a folder), `train`, `dev` and `test` (files of lines "label
text"), `epochs`, `batch_size`, `learning_rate`, `seed`. Batches are padded to their
longest row; AdamW with decay 0.01 but on biases and norms, a tenth of the steps of
warmup, linear decay, gradients clipped to 1. Prints JSON: seconds of training alone,
and accuracies after each epoch.
"""

import json
import sys
import time

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

MOST = 128


def main() -> None:
    order = json.loads(sys.argv[1])
    torch.manual_seed(order["seed"])
    tokenizer = AutoTokenizer.from_pretrained(order["model"])
    train, dev, test = (read(order[name]) for name in ("train", "dev", "test"))
    labels = sorted({label for label, _ in train})
    model = AutoModelForSequenceClassification.from_pretrained(
        order["model"], num_labels=len(labels)
    )
    steps = order["epochs"] * -(-len(train) // order["batch_size"])
    optimizer = torch.optim.AdamW(groups_of(model), lr=order["learning_rate"])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: rate(s, steps))
    seconds, reached = 0.0, []
    for _ in range(order["epochs"]):
        model.train()
        started = time.perf_counter()
        for rows in batches(train, order["batch_size"], shuffled=True):
            inputs = encoded(tokenizer, rows)
            inputs["labels"] = torch.tensor([labels.index(label) for label, _ in rows])
            loss = model(**inputs).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        seconds += time.perf_counter() - started
        reached.append([accuracy(model, tokenizer, s, labels) for s in (dev, test)])
    print(json.dumps({"seconds": seconds, "dev_and_test": reached}))


def read(path: str) -> list[tuple[str, str]]:
    with open(path, encoding="utf-8") as file:
        return [tuple(line.rstrip("\n").split(" ", 1)) for line in file]


def groups_of(model) -> list[dict]:
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim == 1]
    return [
        {"params": decayed, "weight_decay": 0.01},
        {"params": others, "weight_decay": 0.0},
    ]


def rate(step: int, steps: int) -> float:
    warmup = steps // 10
    return min((step + 1) / (warmup + 1), (steps - step) / (steps - warmup))


def batches(examples: list, size: int, shuffled: bool = False):
    order = torch.randperm(len(examples)) if shuffled else torch.arange(len(examples))
    for start in range(0, len(order), size):
        yield [examples[number] for number in order[start : start + size]]


def encoded(tokenizer, rows):
    texts = [text for _, text in rows]
    return tokenizer(
        texts, padding=True, truncation=True, max_length=MOST, return_tensors="pt"
    )


@torch.no_grad()
def accuracy(model, tokenizer, examples, labels) -> float:
    model.eval()
    right = 0
    for rows in batches(examples, 64):
        found = model(**encoded(tokenizer, rows)).logits.argmax(-1)
        right += sum(
            labels[n] == label for n, (label, _) in zip(found, rows, strict=True)
        )
    return right / len(examples)


if __name__ == "__main__":
    main()
