#include "posattn/model/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "posattn/base/error.h"
#include "posattn/base/random.h"

namespace posattn {
namespace {

using Bytes = std::vector<std::byte>;

// A file with this header text and so many bytes of data.
Bytes file_of(const std::string& header, size_t data_size) {
  const uint64_t length = header.size();
  Bytes bytes(8 + header.size() + data_size);
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

std::string message_of(const Bytes& bytes) {
  try {
    parse_safetensors(bytes, "m.safetensors");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_NE(std::string(error.what()).find("m.safetensors"), std::string::npos);
    return error.what();
  }
  return "";
}

// Tensors of random number, type and shape (rank 0 and empty ones too), with their memory.
struct RandomTensors {
  explicit RandomTensors(uint64_t seed) {
    RandomStream random(seed, Purpose::train_data, 0, 0);
    const uint32_t count = random.below(6);
    for (uint32_t i = 0; i < count; ++i) {
      TensorView tensor;
      tensor.name = "t\"\\" + std::to_string(i);
      tensor.type = std::array{DataType::f32, DataType::f64, DataType::i32, DataType::bf16,
                               DataType::u8}[random.below(5)];
      size_t size = element_size(tensor.type);
      for (uint32_t rank = random.below(4); rank > 0; --rank) {
        tensor.shape.push_back(random.below(5));
        size *= static_cast<size_t>(tensor.shape.back());
      }
      memory.emplace_back(size);
      for (std::byte& byte : memory.back()) byte = std::byte(random.below(256));
      tensors.push_back(tensor);
    }
    for (uint32_t i = 0; i < count; ++i) tensors[i].data = memory[i];
    if (random.below(2) == 1) metadata = {{"a", "b\n"}, {"ключ", "значение"}};
  }
  std::vector<Bytes> memory;
  std::vector<TensorView> tensors;
  std::map<std::string, std::string> metadata;
};

TEST(Safetensors, RoundTrip) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RandomTensors random(seed);
    const Bytes bytes = write_safetensors(random.metadata, random.tensors);
    EXPECT_EQ(bytes, write_safetensors(random.metadata, random.tensors));
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    EXPECT_EQ(length % 8, 0u);
    const SafetensorsFile file = parse_safetensors(bytes);
    EXPECT_EQ(file.metadata, random.metadata);
    ASSERT_EQ(file.tensors.size(), random.tensors.size());
    for (const TensorView& written : random.tensors) {
      const TensorView* read = file.find(written.name);
      ASSERT_NE(read, nullptr);
      EXPECT_EQ(read->type, written.type);
      EXPECT_EQ(read->shape, written.shape);
      EXPECT_TRUE(std::ranges::equal(read->data, written.data));
    }
  }
}

TEST(Safetensors, Values) {
  const std::vector<float> numbers = {1.5f, -2, 3};
  const Bytes bytes = write_safetensors({}, {make_view<float>("x", {3}, numbers)});
  const SafetensorsFile file = parse_safetensors(bytes);
  EXPECT_EQ(file.find("x")->values<float>(), numbers);
  EXPECT_THROW(file.find("x")->values<double>(), std::logic_error);
  EXPECT_EQ(file.find("y"), nullptr);
  EXPECT_THROW(write_safetensors({}, {make_view<float>("x", {2}, numbers)}), std::logic_error);
  const TensorView twice = make_view<float>("x", {3}, numbers);
  EXPECT_THROW(write_safetensors({}, {twice, twice}), std::logic_error);
}

TEST(Safetensors, AcceptsAnyOrderAndTrailingSpaces) {
  const Bytes bytes = file_of(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                              R"("a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}}   )",
                              8);
  const SafetensorsFile file = parse_safetensors(bytes);
  EXPECT_EQ(file.tensors[0].name, "a");
  EXPECT_EQ(file.tensors[1].name, "b");
}

TEST(Safetensors, RefusesWhatIsWrong) {
  const auto one = [](const std::string& entry) { return "{\"x\":" + entry + "}"; };
  const struct {
    std::string header;
    size_t data_size;
    const char* part;
  } rows[] = {
      {" {}", 0, "does not begin with '{'"},
      {"{", 0, "not valid JSON"},
      {"{} x", 0, "not valid JSON"},
      {one(std::string(100000, '[') + std::string(100000, ']')), 0, "nested too deeply"},
      {"{}", 1, "1 bytes of data"},
      {R"({"__metadata__":3})", 0, "metadata is not an object"},
      {R"({"__metadata__":{"a":1}})", 0, "metadata 'a' is not a string"},
      {R"({"__metadata__":{"a":"","a":""}})", 0, "appears twice"},
      {one("3"), 0, "malformed"},
      {one(R"({"dtype":"F32","shape":[]})"), 0, "malformed"},
      {one(R"({"dtype":"F32","shape":[],"data_offsets":[0,4],"more":1})"), 4, "malformed"},
      {one(R"({"dtype":"F8","shape":[4],"data_offsets":[0,4]})"), 4, "is of type F8"},
      {one(R"({"dtype":1,"shape":[1],"data_offsets":[0,4]})"), 4, "is of type ?"},
      {one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), 4, "not a list of sizes"},
      {one(R"({"dtype":"F32","shape":[1.0],"data_offsets":[0,4]})"), 4, "not a list of sizes"},
      {one(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})"), 4, "not a list of sizes"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})"), 4, "data_offsets [0]"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), 4, "data_offsets [4, 0]"},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), 4, "within 4 bytes"},
      {one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), 4, "8 bytes for F32 [2]"},
      {one(R"({"dtype":"F32","shape":[4294967296,1073741824],"data_offsets":[0,0]})"), 0,
       "larger than any memory"},
      {one(R"({"dtype":"F32","shape":[9223372036854775808,0],"data_offsets":[0,0]})"), 0,
       "larger than any memory"},
      {one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), 8, "begins at byte 4"},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("y":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "begins at byte 0"},
      {R"({"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
       R"("x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
       0, "appears twice"},
  };
  for (const auto& row : rows) {
    const std::string message = message_of(file_of(row.header, row.data_size));
    EXPECT_NE(message.find(row.part), std::string::npos) << row.header << " gives: " << message;
  }
  EXPECT_NE(message_of(Bytes(7)).find("too few"), std::string::npos);
  for (const uint64_t length : {uint64_t{1}, uint64_t{100'000'001}, ~uint64_t{0}}) {
    Bytes bytes(8);
    std::memcpy(bytes.data(), &length, 8);
    EXPECT_NE(message_of(bytes).find("the header length is"), std::string::npos);
  }
}

// Flipped bytes and cut files give an Error or a valid file whose views lie within the bytes.
TEST(Safetensors, DamagedFilesNeverCrash) {
  int refused = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const RandomTensors random(seed % 50);
    Bytes bytes = write_safetensors(random.metadata, random.tensors);
    RandomStream stream(seed, Purpose::test_data, 0, 0);
    for (uint32_t flips = 1 + stream.below(3); flips > 0; --flips) {
      bytes[stream.below(static_cast<uint32_t>(bytes.size()))] = std::byte(stream.below(256));
    }
    if (stream.below(2) == 1) bytes.resize(stream.below(static_cast<uint32_t>(bytes.size()) + 1));
    try {
      for (const TensorView& tensor : parse_safetensors(bytes).tensors) {
        EXPECT_GE(tensor.data.data(), bytes.data());
        EXPECT_LE(tensor.data.data() + tensor.data.size(), bytes.data() + bytes.size());
      }
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1500);
}

}  // namespace
}  // namespace posattn
