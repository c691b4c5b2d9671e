#include "posattn/model/file/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "posattn/base/error.h"
#include "posattn/base/hash.h"
#include "posattn/base/json_fields.h"

namespace posattn {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using nlohmann::json;
using Metadata = std::map<std::string, std::string>;

constexpr uint64_t header_limit = 100'000'000;
constexpr const char* metadata_key = "__metadata__";
constexpr DataType data_types[] = {DataType::f32,  DataType::f64, DataType::i32,    DataType::f16,
                                   DataType::bf16, DataType::u8,  DataType::boolean};

// Covers what the file says, not how: tools may order tensors in their own way.
std::string checksum_of(const Metadata& metadata, const std::vector<TensorView>& tensors) {
  uint64_t hash = hash_of_part(std::to_string(metadata.size()), hash_of(""));
  for (const auto& [key, value] : metadata) hash = hash_of_part(value, hash_of_part(key, hash));
  std::vector<const TensorView*> by_name;
  for (const TensorView& tensor : tensors) by_name.push_back(&tensor);
  std::ranges::sort(by_name, {}, &TensorView::name);
  for (const TensorView* tensor : by_name) {
    const std::string type =
        fmt::format("{} {}", to_string(tensor->type), fmt::join(tensor->shape, " "));
    hash = hash_of_bytes(tensor->data, hash_of_part(type, hash_of_part(tensor->name, hash)));
  }
  return fmt::format("{:016x}", hash);
}

// Metadata may hold any bytes (a file name); what is not UTF-8 must not make saving fail.
Metadata as_utf8(const Metadata& metadata) {
  return json::parse(json(metadata).dump(-1, ' ', false, json::error_handler_t::replace))
      .get<Metadata>();
}

// Reads one file; `name_` only serves the errors.
class Parser {
 public:
  Parser(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  SafetensorsFile parse() {
    const json header = read_header();
    SafetensorsFile file;
    std::vector<std::pair<uint64_t, TensorView>> tensors;  // with their first byte
    for (const auto& [key, value] : header.items()) {
      if (key == metadata_key) {
        file.metadata = read_metadata(value);
      } else {
        tensors.push_back(read_tensor(key, value));
      }
    }
    std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first, a.second.data.size()) < std::pair(b.first, b.second.data.size());
    });
    check_tiling(tensors);
    for (auto& [begin, tensor] : tensors) file.tensors.push_back(std::move(tensor));
    check_checksum(file);
    return file;
  }

 private:
  Error error(const std::string& what, std::string expected = {}) const {
    return Error(ExitCode::data, fmt::format("{}: {}", name_, what), std::move(expected),
                 "the file is damaged or not a safetensors file");
  }

  json read_header() {
    uint64_t length = 0;
    if (bytes_.size() < sizeof length) {
      throw error(fmt::format("{} bytes are too few for a safetensors file", bytes_.size()));
    }
    std::memcpy(&length, bytes_.data(), sizeof length);
    const std::span<const std::byte> rest = bytes_.subspan(sizeof length);
    if (length > header_limit || length > rest.size()) {
      throw error(fmt::format("the header length is {}", length),
                  fmt::format("at most {}", std::min<uint64_t>(header_limit, rest.size())));
    }
    const std::string_view text(reinterpret_cast<const char*>(rest.data()), length);
    if (!text.starts_with('{')) throw error("the header does not begin with '{'");
    data_ = rest.subspan(length);
    return parse_strict_json(text, fmt::format("{}: header", name_));
  }

  void check_checksum(SafetensorsFile& file) const {
    const auto stored = file.metadata.extract(std::string(checksum_key));
    if (stored.empty()) return;
    const std::string found = checksum_of(file.metadata, file.tensors);
    if (stored.mapped() == found) return;
    throw Error(
        ExitCode::data,
        fmt::format("{}: the contents do not have the checksum that they were written with", name_),
        fmt::format("{} = {}", checksum_key, found),
        fmt::format("the file was damaged or changed: use another copy; where it was "
                    "changed on purpose, remove '{}' from its metadata",
                    checksum_key));
  }

  Metadata read_metadata(const json& value) const {
    if (!value.is_object()) throw error("the metadata is not an object");
    Metadata metadata;
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) throw error(fmt::format("metadata '{}' is not a string", key));
      metadata[key] = text.get<std::string>();
    }
    return metadata;
  }

  std::pair<uint64_t, TensorView> read_tensor(const std::string& key, const json& value) const {
    const bool complete = value.is_object() && value.size() == 3 && value.contains("dtype") &&
                          value.contains("shape") && value.contains("data_offsets");
    if (!complete) {
      throw error(fmt::format("the entry of tensor '{}' is malformed", key),
                  "an object with dtype, shape and data_offsets");
    }
    TensorView tensor;
    tensor.name = key;
    tensor.type = read_type(key, value["dtype"]);
    uint64_t size = element_size(tensor.type);
    for (const uint64_t extent : read_numbers(key, "shape", value["shape"])) {
      if (extent > uint64_t{std::numeric_limits<int64_t>::max()} ||
          __builtin_mul_overflow(size, extent, &size)) {
        throw error(fmt::format("tensor '{}' is larger than any memory", key));
      }
      tensor.shape.push_back(static_cast<int64_t>(extent));
    }
    const std::vector<uint64_t> offsets = read_numbers(key, "data_offsets", value["data_offsets"]);
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_.size()) {
      throw error(fmt::format("tensor '{}' has data_offsets [{}]", key, fmt::join(offsets, ", ")),
                  fmt::format("begin and end within {} bytes of data", data_.size()));
    }
    if (offsets[1] - offsets[0] != size) {
      throw error(fmt::format("tensor '{}' has {} bytes of data", key, offsets[1] - offsets[0]),
                  fmt::format("{} bytes for {} [{}]", size, to_string(tensor.type),
                              fmt::join(tensor.shape, ", ")));
    }
    tensor.data = data_.subspan(offsets[0], size);
    return {offsets[0], std::move(tensor)};
  }

  DataType read_type(const std::string& key, const json& value) const {
    const std::string type = value.is_string() ? value.get<std::string>() : "?";
    for (const DataType known : data_types) {
      if (type == to_string(known)) return known;
    }
    throw Error(ExitCode::data, fmt::format("{}: tensor '{}' is of type {}", name_, key, type),
                "F32, F64, F16, BF16, I32, U8 or BOOL",
                "convert the tensors to 32-bit floats first");
  }

  std::vector<uint64_t> read_numbers(const std::string& key, const char* field,
                                     const json& value) const {
    const bool numbers = value.is_array() && std::all_of(value.begin(), value.end(), [](auto& v) {
                           return v.is_number_unsigned();
                         });
    if (!numbers) throw error(fmt::format("tensor '{}': {} is not a list of sizes", key, field));
    return value.get<std::vector<uint64_t>>();
  }

  // No byte may be unused or shared: a file cannot hide data, or be larger than it says.
  void check_tiling(const std::vector<std::pair<uint64_t, TensorView>>& tensors) const {
    uint64_t position = 0;
    for (const auto& [begin, tensor] : tensors) {
      if (begin != position) {
        throw error(fmt::format("tensor '{}' begins at byte {} of the data", tensor.name, begin),
                    fmt::format("{}, where the one before it ends", position));
      }
      position += tensor.data.size();
    }
    if (position != data_.size()) {
      throw error(fmt::format("{} bytes of data", data_.size()),
                  fmt::format("{}, as the tensors need", position));
    }
  }

  std::span<const std::byte> bytes_, data_;
  std::string_view name_;
};

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string_view to_string(DataType type) {
  switch (type) {
    case DataType::f32:
      return "F32";
    case DataType::f64:
      return "F64";
    case DataType::i32:
      return "I32";
    case DataType::f16:
      return "F16";
    case DataType::bf16:
      return "BF16";
    case DataType::u8:
      return "U8";
    case DataType::boolean:
      return "BOOL";
  }
  return "?";
}

size_t element_size(DataType type) {
  switch (type) {
    case DataType::f64:
      return 8;
    case DataType::f16:
    case DataType::bf16:
      return 2;
    case DataType::u8:
    case DataType::boolean:
      return 1;
    default:
      return 4;
  }
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const TensorView& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

SafetensorsFile parse_safetensors(std::span<const std::byte> bytes, std::string_view name) {
  return Parser(bytes, name).parse();
}

std::vector<std::byte> write_safetensors(const std::map<std::string, std::string>& metadata,
                                         const std::vector<TensorView>& tensors) {
  Metadata written = as_utf8(metadata);
  written.erase(std::string(checksum_key));
  written.emplace(checksum_key, checksum_of(written, tensors));
  nlohmann::ordered_json header = {{metadata_key, written}};
  std::set<std::string_view> names = {metadata_key};
  uint64_t size = 0;
  for (const TensorView& tensor : tensors) {
    uint64_t expected = element_size(tensor.type);
    for (const int64_t extent : tensor.shape) expected *= static_cast<uint64_t>(extent);
    if (expected != tensor.data.size() || !names.insert(tensor.name).second) {
      throw std::logic_error("tensor '" + tensor.name + "': a wrong size or a name used twice");
    }
    header.push_back({tensor.name,
                      {{"dtype", to_string(tensor.type)},
                       {"shape", tensor.shape},
                       {"data_offsets", {size, size + expected}}}});
    size += expected;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');

  const uint64_t length = text.size();
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof length + length + size);
  const auto append = [&](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  append(std::as_bytes(std::span(&length, 1)));
  append(std::as_bytes(std::span(text)));
  for (const TensorView& tensor : tensors) append(tensor.data);
  return bytes;
}

}  // namespace posattn
