// What parity_tool reads and writes: one safetensors file of questions (the cases as JSON in the
// metadata, their tensors as "CASE/NAME", in double) and one of answers, named the same way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "posattn/model/file/safetensors.h"
#include "posattn/model/spec/parameters.h"

namespace posattn::parity {

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<double> values;
};

class Question {
 public:
  explicit Question(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    const SafetensorsFile parsed = parse_safetensors(std::as_bytes(std::span(bytes)));
    cases_ = nlohmann::json::parse(parsed.metadata.at("cases"));
    for (const TensorView& view : parsed.tensors) {
      tensors_[view.name] = {view.shape, view.values<double>()};
    }
  }

  const nlohmann::json& cases() const { return cases_; }
  bool has(const std::string& name) const { return tensors_.contains(name); }
  const Tensor& at(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw std::runtime_error("the question lacks " + name);
    return found->second;
  }

  // The tensors "PREFIX/<parameter>" as parameters of this spec.
  template <class T>
  Parameters<T> parameters(const ModelSpec& spec, const std::string& prefix) const {
    Parameters<T> result(spec);
    for (const TensorInfo& info : result.layout().tensors()) {
      const Tensor& tensor = at(prefix + "/" + info.name);
      if (tensor.shape != info.shape) throw std::runtime_error("another shape: " + info.name);
      std::copy(tensor.values.begin(), tensor.values.end(), result.slice(info).begin());
    }
    return result;
  }

 private:
  nlohmann::json cases_;
  std::map<std::string, Tensor> tensors_;
};

class Answer {
 public:
  template <class Values>
  void add(const std::string& name, std::vector<int64_t> shape, const Values& values) {
    tensors_[name] = {std::move(shape), std::vector<double>(values.begin(), values.end())};
  }

  void write(const std::filesystem::path& path) const {
    std::vector<TensorView> views;
    for (const auto& [name, tensor] : tensors_) {
      views.push_back(make_view<double>(name, tensor.shape, tensor.values));
    }
    const std::vector<std::byte> bytes = write_safetensors({}, views);
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
  }

 private:
  std::map<std::string, Tensor> tensors_;
};

}  // namespace posattn::parity
