// For the tests of pages and drawings: is a piece of SVG or HTML well formed? Elements must nest,
// attributes be quoted, entities be known, ids be unique. Not a parser of XML: just enough to catch
// a broken page.
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace posattn {

class MarkupCheck {
 public:
  // "" when well formed, otherwise what is wrong.
  std::string operator()(std::string_view text) {
    while (problem_.empty() && !text.empty()) {
      const size_t tag = text.find('<');
      check_text(text.substr(0, tag));
      if (tag == std::string_view::npos) break;
      const size_t end = text.find('>', tag);
      if (end == std::string_view::npos) return "a tag does not end";
      check_tag(text.substr(tag + 1, end - tag - 1));
      text.remove_prefix(end + 1);
    }
    if (problem_.empty() && !open_.empty()) problem_ = "<" + open_.back() + "> is not closed";
    return problem_;
  }

 private:
  void fail(const std::string& what, std::string_view where) {
    if (problem_.empty()) problem_ = what + ": " + std::string(where.substr(0, 80));
  }

  void check_text(std::string_view text) {
    for (size_t at = text.find('&'); at != std::string_view::npos; at = text.find('&', at + 1)) {
      const std::string_view entity = text.substr(at, text.find(';', at) - at + 1);
      static const std::set<std::string_view> known{"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
      if (!known.contains(entity)) fail("unknown entity", text.substr(at));
    }
  }

  void check_tag(std::string_view tag) {
    if (tag.starts_with("!DOCTYPE")) return;
    const bool closing = tag.starts_with("/"), empty = tag.ends_with("/");
    if (closing) tag.remove_prefix(1);
    if (empty) tag.remove_suffix(1);
    const std::string name(tag.substr(0, tag.find_first_of(" \t\n")));
    tag.remove_prefix(name.size());
    if (closing) {
      if (open_.empty() || open_.back() != name) return fail("unexpected end", name);
      open_.pop_back();
      return;
    }
    check_attributes(tag);
    if (!empty) open_.push_back(name);
  }

  void check_attributes(std::string_view rest) {
    while (true) {
      while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest[0]))) {
        rest.remove_prefix(1);
      }
      if (rest.empty()) return;
      const size_t equals = rest.find('=');
      if (equals == std::string_view::npos) return fail("attribute without a value", rest);
      const std::string_view name = rest.substr(0, rest.find_first_of(" ="));
      rest.remove_prefix(rest.find_first_not_of(' ', equals + 1));
      if (rest[0] != '"' && rest[0] != '\'') return fail("attribute without quotes", rest);
      const size_t end = rest.find(rest[0], 1);
      if (end == std::string_view::npos) return fail("attribute does not end", rest);
      const std::string_view value = rest.substr(1, end - 1);
      check_text(value);
      if (name == "id" && !ids_.insert(std::string(value)).second) fail("id twice", value);
      rest.remove_prefix(end + 1);
    }
  }

  std::vector<std::string> open_;
  std::set<std::string> ids_;
  std::string problem_;
};

inline std::string markup_problem(std::string_view text) { return MarkupCheck()(text); }

// How often `part` stands in `text`.
inline int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace posattn
