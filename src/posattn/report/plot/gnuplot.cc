#include "posattn/report/plot/gnuplot.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "posattn/base/command.h"
#include "posattn/report/markup.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

// The script lives in a folder of its own that goes when the work is done.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code ignored;
    std::filesystem::path place = std::filesystem::temp_directory_path(ignored);
    std::string pattern = (place / "posattn-figure-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw Error(ExitCode::failed, "cannot make a folder for gnuplot's files in " + place.string(),
                  std::strerror(errno), "set TMPDIR to a folder you can write to");
    }
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string file(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

CommandEnd gnuplot(const std::string& script) {
  try {
    return run_to_end({"gnuplot", "-d", script});  // -d: no ~/.gnuplot
  } catch (const Error& error) {
    throw NoGnuplot(ExitCode::failed, "cannot draw the figures: " + error.problem(),
                    "gnuplot on the PATH",
                    "install Debian's package gnuplot-nox: sudo apt-get install gnuplot-nox");
  }
}

// What stands between tags came from outside and stays as it is.
bool is_in_tag(const std::string& drawing, size_t at) {
  const size_t begin = drawing.rfind('<', at), end = drawing.rfind('>', at);
  return begin != std::string::npos && (end == std::string::npos || begin > end);
}

void replace_in_tags(std::string& drawing, const std::string& before, const std::string& after) {
  for (size_t at = drawing.find(before); at != std::string::npos;
       at = drawing.find(before, at + 1)) {
    if (!is_in_tag(drawing, at)) continue;
    drawing.replace(at, before.size(), after);
    at += after.size() - 1;
  }
}

// gnuplot writes one colour as rgb( 85,  85,  85), rgb(85,85,85) or by name; here as #rrggbb.
void spell_colours_alike(std::string& drawing) {
  replace_in_tags(drawing, "fill = '", "fill='");
  replace_in_tags(drawing, "\"black\"", "\"#000000\"");
  replace_in_tags(drawing, "#FFFFFF", "#ffffff");
  constexpr std::string_view digits = "0123456789";
  for (size_t at = drawing.find("rgb("); at != std::string::npos;
       at = drawing.find("rgb(", at + 1)) {
    if (!is_in_tag(drawing, at)) continue;
    std::string colour = "#";
    size_t end = at;
    for (int part = 0; part < 3; ++part) {
      const size_t number = drawing.find_first_of(digits, end);
      end = drawing.find_first_not_of(digits, number);
      colour += fmt::format("{:02x}", std::stoi(drawing.substr(number, end - number)));
    }
    drawing.replace(at, drawing.find(')', at) + 1 - at, colour);
  }
}

}  // namespace

std::string run_gnuplot(std::string_view script) {
  const ScratchFolder folder;
  std::ofstream stream(folder.file("script"), std::ios::binary);
  stream << script;
  stream.close();
  if (!stream) {
    throw Error(ExitCode::failed, "cannot write gnuplot's script to " + folder.file("script"), "",
                "is the disk full? TMPDIR chooses another place");
  }
  CommandEnd end = gnuplot(folder.file("script"));
  if (!end.problem.empty() || end.output.empty()) {
    throw Error(ExitCode::failed, "gnuplot failed: " + end.messages);
  }
  return std::move(end.output);
}

std::string svg_element(std::string drawing, const DrawingText& text) {
  drawing.erase(0, drawing.find("<svg"));  // inside a page an XML declaration would be an error
  // gnuplot names its markers the same in every drawing; on one page ids must differ.
  replace_in_tags(drawing, "id='", "id='" + text.name + "_");
  replace_in_tags(drawing, "href='#", "href='#" + text.name + "_");
  replace_in_tags(drawing, "id=\"gnuplot_", "id=\"" + text.name + "_");
  spell_colours_alike(drawing);
  const size_t title = drawing.find("<title>"), end = drawing.find("</desc>");
  if (title != std::string::npos && end != std::string::npos) {
    drawing.erase(title, end + std::string_view("</desc>").size() - title);
  }
  drawing.insert(
      drawing.find('>') + 1,
      fmt::format("\n<title id=\"{0}_title\">{1}</title>\n<desc id=\"{0}_desc\">{2}</desc>"
                  "\n{3}",
                  text.name, escape_markup(text.title), escape_markup(text.description),
                  dark_mode_style(drawing)));
  drawing.insert(std::string_view("<svg").size(),
                 fmt::format(" role=\"img\" aria-labelledby=\"{0}_title {0}_desc\"", text.name));
  return drawing;
}

std::string gnuplot_quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : valid_text(text)) {
    const auto byte = static_cast<unsigned char>(c);
    // Digits are escaped too: gnuplot reads a digit behind an octal number as its fourth.
    const bool plain = byte >= 0x80 || c == ' ' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (byte < 0x20) {
      quoted += ' ';
    } else if (plain) {
      quoted += c;
    } else {
      quoted += fmt::format("\\{:03o}", byte);
    }
  }
  return quoted + "\"";
}

}  // namespace posattn
