#include "posattn/programs/language/library.h"

#include <algorithm>

#include "posattn/base/embedded_file.h"
#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/programs/language/language.h"

namespace posattn {
namespace {

constexpr std::string_view suffix = ".par";

std::string description_of(std::string_view text) {
  if (!text.starts_with('#')) return "";
  std::string_view line = text.substr(1, text.find_first_of("\r\n") - 1);
  while (line.starts_with(' ')) line.remove_prefix(1);
  return std::string(line);
}

}  // namespace

const std::vector<LibraryProgram>& library_programs() {
  static const std::vector<LibraryProgram> programs = [] {
    std::vector<LibraryProgram> list;
    for (const EmbeddedFile& file : embedded_programs()) {
      list.push_back({std::string(file.name.substr(0, file.name.size() - suffix.size())),
                      description_of(file.text), std::string(file.name), std::string(file.text)});
    }
    std::ranges::sort(list, {}, &LibraryProgram::name);
    return list;
  }();
  return programs;
}

LibraryProgram find_program(const std::string& name_or_path) {
  if (name_or_path.ends_with(suffix) || name_or_path.find('/') != std::string::npos) {
    std::string text = read_input_file(name_or_path, language::Limits{}.text_bytes);
    return {name_or_path, description_of(text), name_or_path, std::move(text)};
  }
  std::vector<std::string> known;
  for (const LibraryProgram& program : library_programs()) {
    if (program.name == name_or_path) return program;
    known.push_back(program.name);
  }
  throw unknown_name(ExitCode::usage, "program", name_or_path, known);
}

StaticProgram library_program(const std::string& name_or_path, int length,
                              const Settings& settings) {
  const LibraryProgram program = find_program(name_or_path);
  return compile_text(program.text, program.file, length, {.settings = settings});
}

}  // namespace posattn
