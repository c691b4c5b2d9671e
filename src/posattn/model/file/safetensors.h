// The safetensors format: an 8-byte little-endian header length, a JSON header, the tensors' bytes.
// The reader is strict, for files come from anywhere: whatever it returns lies inside the given
// bytes and is exactly what the header says; everything else is an Error(data).
//
// A file that we write has a checksum in its metadata, of the other metadata and of all tensors;
// the order of the tensors does not count. Files without one, as other tools write them, are read
// as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace posattn {

// Ours are the first three; files of others hold halves, and masks of bytes.
enum class DataType { f32, f64, i32, f16, bf16, u8, boolean };

std::string_view to_string(DataType type);  // "F32", ...
size_t element_size(DataType type);

template <class T>
constexpr DataType data_type_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> ||
                std::is_same_v<T, int32_t>);
  if constexpr (std::is_same_v<T, float>) return DataType::f32;
  if constexpr (std::is_same_v<T, double>) return DataType::f64;
  return DataType::i32;
}

// "[64, 10]"
std::string shape_text(const std::vector<int64_t>& shape);

// A tensor in memory that belongs to someone else: the file's bytes, or what is to be written.
struct TensorView {
  std::string name;
  DataType type = DataType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  // of any alignment

  // The values; T must be of this tensor's type.
  template <class T>
  std::vector<T> values() const {
    if (type != data_type_of<T>()) throw std::logic_error("tensor '" + name + "': other type");
    std::vector<T> result(data.size() / sizeof(T));
    if (!data.empty()) std::memcpy(result.data(), data.data(), data.size());
    return result;
  }
};

template <class T>
TensorView make_view(std::string name, std::vector<int64_t> shape, std::span<const T> values) {
  return {std::move(name), data_type_of<T>(), std::move(shape), std::as_bytes(values)};
}

// The key of the checksum. Whoever changes a file on purpose removes it.
inline constexpr std::string_view checksum_key = "posattn.checksum";

struct SafetensorsFile {
  std::map<std::string, std::string> metadata;  // without the checksum, which was right
  std::vector<TensorView> tensors;  // in the order of the data; views into the parsed bytes

  const TensorView* find(std::string_view name) const;  // nullptr when there is none
};

// `name` is the file's name in errors.
SafetensorsFile parse_safetensors(std::span<const std::byte> bytes,
                                  std::string_view name = "safetensors data");

// The same arguments give the same bytes: tensors in the given order, metadata sorted by key, the
// checksum among it.
std::vector<std::byte> write_safetensors(const std::map<std::string, std::string>& metadata,
                                         const std::vector<TensorView>& tensors);

}  // namespace posattn
