"""One worker of a pretraining run; run as a program by tests.

python worker_run.py SHARDS OUT STEPS
"""

import sys

from bert_keras import PretrainingOptions, RunSettings, Shards, pretrain, strategy_named


def main() -> None:
    strategy = strategy_named("auto")  # TF_CONFIG names several workers
    assert strategy.num_replicas_in_sync == 2
    shards, out, steps = sys.argv[1:]
    options = PretrainingOptions(
        steps=int(steps), sequence_length=12, batch_size=5, predictions=2
    )
    settings = RunSettings(
        strategy=strategy, save_steps=2, record_steps=1, evaluate_steps=3
    )
    pretrain(Shards(shards), options, out, settings)


if __name__ == "__main__":
    main()
