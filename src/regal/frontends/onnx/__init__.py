"""ONNX files: `load` reads one, with every tensor's size, into the project's graph."""

from regal.frontends.onnx.load import load

__all__ = ["load"]
