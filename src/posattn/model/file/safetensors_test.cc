#include "posattn/model/file/safetensors.h"

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

bool same_contents(const SafetensorsFile& a, const SafetensorsFile& b) {
  return a.metadata == b.metadata &&
         std::ranges::equal(a.tensors, b.tensors, [](const TensorView& x, const TensorView& y) {
           return x.name == y.name && x.type == y.type && x.shape == y.shape &&
                  std::ranges::equal(x.data, y.data);
         });
}

TEST(Safetensors, EveryFlippedBitIsRefusedOrChangesNothing) {
  const std::vector<float> numbers = {1.5f, -2, 3};
  Bytes bytes = write_safetensors(
      {{"a", "b"}, {"posattn", "1"}},
      {make_view<float>("x", {3}, numbers), make_view<float>("w", {1, 3}, numbers)});
  const Bytes good = bytes;
  const SafetensorsFile whole = parse_safetensors(good);
  int harmless = 0;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    try {
      const SafetensorsFile file = parse_safetensors(bytes);
      ++harmless;
      // Where the bit is one of the checksum's own key, the file has an entry more.
      SafetensorsFile expected = whole;
      for (const auto& [key, value] : file.metadata) {
        if (key.size() == checksum_key.size()) expected.metadata[key] = value;
      }
      EXPECT_TRUE(same_contents(file, expected)) << bit;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
    }
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
  }
  EXPECT_LT(harmless, 8 * 16);
}

TEST(Safetensors, TheChecksumIsOfWhatTheFileSays) {
  const std::vector<float> numbers = {1.5f, -2, 3, 4};
  const TensorView a = make_view<float>("a", {2}, std::span(numbers).first(2));
  const TensorView b = make_view<float>("b", {1, 2}, std::span(numbers).last(2));
  const auto changed = [](Bytes bytes, std::string_view from, std::string_view to) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    std::memcpy(bytes.data() + text.find(from), to.data(), to.size());
    return bytes;
  };
  const Bytes bytes = write_safetensors({{"key", "value"}}, {a, b});
  EXPECT_NE(message_of(changed(bytes, "value", "other")).find("remove 'posattn.checksum'"),
            std::string::npos);
  EXPECT_NE(message_of(changed(bytes, "[1,2]", "[2,1]")), "");
  EXPECT_NE(message_of(changed(bytes, "\"b\"", "\"c\"")), "");
  // Other tools may keep the metadata and order the tensors in their own way.
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t at = text.find("posattn.checksum") + 19;
  const std::string header = R"({"b":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}, "a":)"
                             R"({"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
                             R"("__metadata__":{"posattn.checksum":")" +
                             std::string(text.substr(at, 16)) + R"(","key":"value"}})";
  Bytes other = file_of(header, 16);
  std::memcpy(other.data() + other.size() - 16, numbers.data() + 2, 8);
  std::memcpy(other.data() + other.size() - 8, numbers.data(), 8);
  EXPECT_EQ(message_of(other), "");
  // A file without a checksum of ours is read as it is.
  EXPECT_EQ(
      message_of(changed(changed(bytes, "posattn.checksum", "another.checksum"), "value", "other")),
      "");
}

TEST(Safetensors, MetadataThatIsNotUtf8IsWrittenAsWhatCanBeRead) {
  const SafetensorsFile file = parse_safetensors(write_safetensors({{"file", "a\xff"}}, {}));
  EXPECT_EQ(file.metadata.at("file"), "a\xef\xbf\xbd");
}

}  // namespace
}  // namespace posattn
