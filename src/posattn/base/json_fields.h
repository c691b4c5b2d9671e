// The values of a JSON object that stands in a file. What is missing or of another kind is an
// Error(data) that names the place and the key.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace posattn {

class JsonFields {
 public:
  // `where` names the object in errors ("runs/a/metrics.jsonl:3"). Throws where it is no object.
  // `object` must outlive this.
  JsonFields(const nlohmann::json& object, std::string where);

  bool has(const std::string& key) const { return object_.contains(key); }
  const nlohmann::json& at(const std::string& key) const;
  int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;  // as json_number writes it
  std::string text(const std::string& key) const;
  std::map<std::string, std::string> texts(const std::string& key) const;  // an object of them

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const;

  const nlohmann::json& object_;
  std::string where_;
};

}  // namespace posattn
