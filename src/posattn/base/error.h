// One kind of error for everything a user can cause: it names the thing, says what was expected,
// and ends with a hint. The command line turns it into one message and the documented exit code.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace posattn {

// Process exit codes, as documented in docs/commands.md.
enum class ExitCode {
  done = 0,
  failed = 1,
  usage = 2,
  configuration = 3,
  data = 4,
  device = 5,
  verification = 6,
  interrupted = 130,
};

class Error : public std::runtime_error {
 public:
  // `what`: the thing and its value ("unknown task 'cumsum'"). `expected`: what would have been
  // right ("expected one of: ..."). `hint`: what to do. The last two may be empty.
  Error(ExitCode code, std::string what, std::string expected = {}, std::string hint = {});

  ExitCode code() const { return code_; }
  const std::string& problem() const { return problem_; }
  const std::string& expected() const { return expected_; }
  const std::string& hint() const { return hint_; }
  // The same error about another thing, such as the file that contains it.
  Error as(ExitCode code, std::string what) const {
    return {code, std::move(what), expected_, hint_};
  }
  Error as(ExitCode code) const { return as(code, problem_); }

 private:
  ExitCode code_;
  std::string problem_, expected_, hint_;
};

// "unknown <kind> '<name>'", with every known name and the nearest one as the hint.
// `where` is appended to the problem when not empty ("in sweep.toml:4").
Error unknown_name(ExitCode code, std::string_view kind, std::string_view name,
                   const std::vector<std::string>& known, std::string_view where = {});

// The known name closest to `name` by edit distance, or "" when none is close.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

}  // namespace posattn
