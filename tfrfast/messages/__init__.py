"""Protobuf messages: their descriptors, and the paths to their fields."""

from tfrfast.messages.message import Message, MessageFeature

__all__ = ["Message", "MessageFeature"]
