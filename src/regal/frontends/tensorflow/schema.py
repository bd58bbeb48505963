"""TensorFlow's graph messages, without TensorFlow: importing it takes seconds.

The classes live in a descriptor pool of their own, so they never meet TensorFlow's. Fields that
are not listed survive in binary files as unknown fields; `LEFT_OUT` names them for text files.

Source: tensorflow/core/framework/*.proto and tensorflow/core/protobuf/{meta_graph,saved_model,
saver}.proto of TensorFlow 2.21; numbers never change, by protobuf's rules.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Proto = Any  # a message of this schema; protobuf's classes have no annotations

# Fields that no reader of graphs needs and whose messages are large.
LEFT_OUT = frozenset(
    {
        "any_info",
        "debug_info",
        "experimental_full_type",
        "experimental_type",
        "object_graph_def",
        "type_spec",
    }
)

# "map<A, B>" and "oneof" as in protobuf; a leading * is "repeated".
_MESSAGES = """
message TensorShapeProto { *TensorShapeProto.Dim dim = 2; bool unknown_rank = 3; }
message TensorShapeProto.Dim { int64 size = 1; string name = 2; }
message ResourceHandleProto { string device = 1; string container = 2; string name = 3;
  uint64 hash_code = 4; string maybe_type_name = 5;
  *ResourceHandleProto.DtypeAndShape dtypes_and_shapes = 6; }
message ResourceHandleProto.DtypeAndShape { DataType dtype = 1; TensorShapeProto shape = 2; }
message VariantTensorDataProto { string type_name = 1; bytes metadata = 2;
  *TensorProto tensors = 3; }
message TensorProto { DataType dtype = 1; TensorShapeProto tensor_shape = 2;
  int32 version_number = 3; bytes tensor_content = 4; *int32 half_val = 13; *float float_val = 5;
  *double double_val = 6; *int32 int_val = 7; *bytes string_val = 8; *float scomplex_val = 9;
  *int64 int64_val = 10; *bool bool_val = 11; *double dcomplex_val = 12;
  *ResourceHandleProto resource_handle_val = 14; *VariantTensorDataProto variant_val = 15;
  *uint32 uint32_val = 16; *uint64 uint64_val = 17; bytes float8_val = 18; }
message AttrValue { oneof value { bytes s = 2; int64 i = 3; float f = 4; bool b = 5;
  DataType type = 6; TensorShapeProto shape = 7; TensorProto tensor = 8;
  AttrValue.ListValue list = 1; NameAttrList func = 10; string placeholder = 9; } }
message AttrValue.ListValue { *bytes s = 2; *int64 i = 3; *float f = 4; *bool b = 5;
  *DataType type = 6; *TensorShapeProto shape = 7; *TensorProto tensor = 8;
  *NameAttrList func = 9; }
message NameAttrList { string name = 1; map<string, AttrValue> attr = 2; }
message NodeDef { string name = 1; string op = 2; *string input = 3; string device = 4;
  map<string, AttrValue> attr = 5; NodeDef.ExperimentalDebugInfo experimental_debug_info = 6; }
message NodeDef.ExperimentalDebugInfo { *string original_node_names = 1;
  *string original_func_names = 2; }
message VersionDef { int32 producer = 1; int32 min_consumer = 2; *int32 bad_consumers = 3; }
message OpDef { string name = 1; *OpDef.ArgDef input_arg = 2; *OpDef.ArgDef output_arg = 3;
  *string control_output = 20; *OpDef.AttrDef attr = 4; OpDeprecation deprecation = 8;
  string summary = 5; string description = 6; bool is_commutative = 18; bool is_aggregate = 16;
  bool is_stateful = 17; bool allows_uninitialized_input = 19;
  bool is_distributed_communication = 21; }
message OpDef.ArgDef { string name = 1; string description = 2; DataType type = 3;
  string type_attr = 4; string number_attr = 5; string type_list_attr = 6;
  *ResourceHandleProto.DtypeAndShape handle_data = 7; bool is_ref = 16; }
message OpDef.AttrDef { string name = 1; string type = 2; AttrValue default_value = 3;
  string description = 4; bool has_minimum = 5; int64 minimum = 6; AttrValue allowed_values = 7; }
message OpDeprecation { int32 version = 1; string explanation = 2; }
message OpList { *OpDef op = 1; }
message FunctionDef { OpDef signature = 1; map<string, AttrValue> attr = 5;
  map<uint32, FunctionDef.ArgAttrs> arg_attr = 7; map<uint32, uint32> resource_arg_unique_id = 8;
  *NodeDef node_def = 3; map<string, string> ret = 4; map<string, string> control_ret = 6; }
message FunctionDef.ArgAttrs { map<string, AttrValue> attr = 1; }
message GradientDef { string function_name = 1; string gradient_func = 2; }
message RegisteredGradient { string gradient_func = 1; string registered_op_type = 2; }
message FunctionDefLibrary { *FunctionDef function = 1; *GradientDef gradient = 2;
  *RegisteredGradient registered_gradients = 3; }
message GraphDef { *NodeDef node = 1; VersionDef versions = 4; int32 version = 3;
  FunctionDefLibrary library = 2; }
message Any { string type_url = 1; bytes value = 2; }
message SaverDef { string filename_tensor_name = 1; string save_tensor_name = 2;
  string restore_op_name = 3; int32 max_to_keep = 4; bool sharded = 5;
  float keep_checkpoint_every_n_hours = 6; CheckpointFormat version = 7; }
message CollectionDef { oneof kind { CollectionDef.NodeList node_list = 1;
  CollectionDef.BytesList bytes_list = 2; CollectionDef.Int64List int64_list = 3;
  CollectionDef.FloatList float_list = 4; CollectionDef.AnyList any_list = 5; } }
message CollectionDef.NodeList { *string value = 1; }
message CollectionDef.BytesList { *bytes value = 1; }
message CollectionDef.Int64List { *int64 value = 1; }
message CollectionDef.FloatList { *float value = 1; }
message CollectionDef.AnyList { *Any value = 1; }
message TensorInfo { oneof encoding { string name = 1; TensorInfo.CooSparse coo_sparse = 4;
  TensorInfo.CompositeTensor composite_tensor = 5; } DataType dtype = 2;
  TensorShapeProto tensor_shape = 3; }
message TensorInfo.CooSparse { string values_tensor_name = 1; string indices_tensor_name = 2;
  string dense_shape_tensor_name = 3; }
message TensorInfo.CompositeTensor { *TensorInfo components = 2; }
message SignatureDef { map<string, TensorInfo> inputs = 1; map<string, TensorInfo> outputs = 2;
  string method_name = 3; map<string, TensorProto> defaults = 4; }
message AssetFileDef { TensorInfo tensor_info = 1; string filename = 2; }
message MetaGraphDef { MetaGraphDef.MetaInfoDef meta_info_def = 1; GraphDef graph_def = 2;
  SaverDef saver_def = 3; map<string, CollectionDef> collection_def = 4;
  map<string, SignatureDef> signature_def = 5; *AssetFileDef asset_file_def = 6; }
message MetaGraphDef.MetaInfoDef { string meta_graph_version = 1; OpList stripped_op_list = 2;
  *string tags = 4; string tensorflow_version = 5; string tensorflow_git_version = 6;
  bool stripped_default_attrs = 7; map<string, string> function_aliases = 8; }
message SavedModel { int64 saved_model_schema_version = 1; *MetaGraphDef meta_graphs = 2; }
message TensorProperties { DataType dtype = 1; TensorShapeProto shape = 2; TensorProto value = 3; }
message Inferred { string error = 1; map<string, Inferred.Outputs> nodes = 2; }
message Inferred.Outputs { *bytes properties = 1; }
"""

# DataType by number; 100 more is a reference to a variable of that type.
DTYPES = {
    1: "float", 2: "double", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string",
    8: "complex64", 9: "int64", 10: "bool", 11: "qint8", 12: "quint8", 13: "qint32",
    14: "bfloat16", 15: "qint16", 16: "quint16", 17: "uint16", 18: "complex128", 19: "half",
    20: "resource", 21: "variant", 22: "uint32", 23: "uint64", 24: "float8_e5m2",
    25: "float8_e4m3fn", 26: "float8_e4m3fnuz", 27: "float8_e4m3b11fnuz", 28: "float8_e5m2fnuz",
    29: "int4", 30: "uint4", 31: "int2", 32: "uint2",
}  # fmt: skip
REF = 100
_ENUMS = {
    "DataType": {"DT_INVALID": 0}
    | {f"DT_{name.upper()}": number for number, name in DTYPES.items()}
    | {f"DT_{name.upper()}_REF": number + REF for number, name in DTYPES.items()},
    "CheckpointFormat": {"LEGACY": 0, "V1": 1, "V2": 2},
}
_FIELD = re.compile(
    r"(?P<many>\*?)(?:map<(?P<key>\w+), (?P<value>[\w.]+)>|(?P<type>[\w.]+))"
    r" (?P<name>\w+) = (?P<number>\d+);|oneof (?P<oneof>\w+) \{|(?P<end>\})"
)
_Field: Proto = descriptor_pb2.FieldDescriptorProto  # type: ignore[attr-defined]
_SCALARS = {
    name: getattr(_Field, f"TYPE_{name.upper()}")
    for name in ("bool", "bytes", "double", "float", "int32", "int64", "string", "uint32", "uint64")
}


def new(name: str) -> Proto:
    """Return an empty message of the kind `name`: "GraphDef", "OpDef.ArgDef", ..."""
    return message_class(name)()


def parse(name: str, data: bytes) -> Proto:
    """Return the message of the kind `name` in `data`.

    Raises:
        google.protobuf.message.DecodeError: the bytes are no such message.
    """
    return message_class(name).FromString(data)


@cache
def message_class(name: str) -> type[Proto]:
    """Return the class of the message `name`."""
    found = _pool().FindMessageTypeByName(f"regal.tf.{name}")
    return cast("type[Proto]", message_factory.GetMessageClass(found))


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(  # type: ignore[attr-defined]
        name="regal/tensorflow.proto", package="regal.tf", syntax="proto3"
    )
    for name, values in _ENUMS.items():
        enum = file.enum_type.add(name=name)
        for value, number in values.items():
            enum.value.add(name=value, number=number)
    made: dict[str, Proto] = {}
    for name, body in re.findall(r"message ([\w.]+) \{((?:[^{}]|\{[^}]*\})*)\}", _MESSAGES):
        outer, _, inner = name.rpartition(".")
        owner = made[outer].nested_type if outer else file.message_type
        made[name] = owner.add(name=inner)
        _fill(made[name], name, body)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _fill(message: Proto, full_name: str, body: str) -> None:
    """Enter the fields that `body` lists into `message`."""
    in_oneof = False
    for found in _FIELD.finditer(body):
        if found["oneof"]:
            message.oneof_decl.add(name=found["oneof"])
            in_oneof = True
        elif found["end"]:
            in_oneof = False
        else:
            many = bool(found["many"] or found["key"])
            field = message.field.add(
                name=found["name"],
                number=int(found["number"]),
                label=_Field.LABEL_REPEATED if many else _Field.LABEL_OPTIONAL,
            )
            if in_oneof:
                field.oneof_index = len(message.oneof_decl) - 1
            if found["key"]:
                _set_type(field, _add_entry(message, full_name, found))
            else:
                _set_type(field, found["type"])


def _add_entry(message: Proto, full_name: str, found: re.Match[str]) -> str:
    """Add the message of one entry of a map, and return its name."""
    camel = "".join(part.capitalize() for part in found["name"].split("_"))
    entry = message.nested_type.add(name=f"{camel}Entry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), start=1):
        field = entry.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
        _set_type(field, found[name])
    return f"{full_name}.{camel}Entry"


def _set_type(field: Proto, name: str) -> None:
    if name in _SCALARS:
        field.type = _SCALARS[name]
        return
    field.type = _Field.TYPE_ENUM if name in _ENUMS else _Field.TYPE_MESSAGE
    field.type_name = f".regal.tf.{name}"
