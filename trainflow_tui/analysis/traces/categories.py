"""The categories and names of profiler events: which are kept, which are device work, which are communication.

Names as met in Kineto's and older profilers' files (spec/engine.md §1 and §3, spec/traces.md §3.1).
"""

from __future__ import annotations

KERNEL = "kernel"
MEMCPY = "gpu_memcpy"
MEMSET = "gpu_memset"

DEVICE_CATEGORIES = (KERNEL, MEMCPY, MEMSET)
"""Work on an accelerator, by the name it is stored under."""

LEGACY_CATEGORIES = {
    "Kernel": KERNEL,
    "Memcpy": MEMCPY,
    "Memset": MEMSET,
    "Operator": "cpu_op",
    "Runtime": "cuda_runtime",
}
"""The spelling of 2021, and what it is stored as."""

KEPT_CATEGORIES = (
    *DEVICE_CATEGORIES,
    "gpu_user_annotation",
    "user_annotation",
    "cpu_op",
    "cuda_runtime",
    "cuda_driver",
    "hip_runtime",
    "privateuse1_runtime",
    "overhead",
    "Trace",
)
"""Complete events of these categories become rows."""

DROPPED_CATEGORIES = frozenset(
    {
        "",  # metadata, instants and counters carry none
        "python_function",  # half to nine tenths of a file; the stack is not needed for time accounting
        "python_func",
        "cpu_instant_event",
        "ac2g",  # flows: the correlation id carries the same link
        "async_cpu_to_gpu",
        "async",
        "fwdbwd",
        "cuda_sync",
    }
)
"""Known and deliberately not stored. What is neither here nor kept is reported as unknown."""

COMMUNICATION_PATTERN = "nccl|rccl|cross_device_reduce"
"""A kernel whose name matches this, in any case, is communication (the narrow list of corpus/traces/README.md)."""


def is_known(category: str) -> bool:
    """Whether the reader knows what a category is, be it kept or dropped."""
    return category in KEPT_CATEGORIES or category in LEGACY_CATEGORIES or category in DROPPED_CATEGORIES
