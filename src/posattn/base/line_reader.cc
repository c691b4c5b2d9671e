#include "posattn/base/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace posattn {

std::vector<std::string> LineReader::read(int milliseconds) {
  std::vector<std::string> lines;
  pollfd waiting{.fd = descriptor_, .events = POLLIN, .revents = 0};
  if (ended_ || ::poll(&waiting, 1, milliseconds) <= 0) return lines;
  std::array<char, 65536> bytes{};
  const ssize_t count = ::read(descriptor_, bytes.data(), bytes.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return lines;
  if (count <= 0) {
    ended_ = true;
    return lines;
  }
  std::string_view rest(bytes.data(), static_cast<std::size_t>(count));
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    lines.push_back(begun_ + std::string(rest.substr(0, end)));
    begun_.clear();
    rest.remove_prefix(end + 1);
  }
  begun_ += rest;
  return lines;
}

bool write_line(int descriptor, std::string_view line) {
  std::string text(line);
  text += '\n';
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t count = ::write(descriptor, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace posattn
