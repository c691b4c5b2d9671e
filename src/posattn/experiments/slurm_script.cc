#include "posattn/experiments/slurm_script.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "posattn/base/command.h"
#include "posattn/base/error.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

constexpr int64_t shortest_time = 300;
constexpr std::string_view letters_and_digits =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

Error bad_time(std::string_view time, const std::string& expected) {
  return Error(ExitCode::usage, fmt::format("--time '{}'", time), expected,
               "for four hours: --time 4:00:00");
}

// "12:30:00" as {12, 30, 0}; nothing where a part is no number.
std::optional<std::vector<int64_t>> numbers_of(std::string_view text) {
  std::vector<int64_t> numbers;
  for (const char *at = text.data(), *end = at + text.size();; ++at) {
    int64_t number = 0;
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ec != std::errc{} || number < 0 || number > 1'000'000) return std::nullopt;
    numbers.push_back(number);
    at = parsed.ptr;
    if (at == end) return numbers;
    if (*at != ':') return std::nullopt;
  }
}

void require_least(const char* flag, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  throw Error(ExitCode::usage, fmt::format("{} {}", flag, value),
              fmt::format("a number from {} to {}", least, most));
}

// Words that stand in a line of the script as they are.
void require_plain(const char* flag, const std::string& value) {
  if (value.find_first_not_of(std::string(letters_and_digits) + "_-.,:=/@%+") == std::string::npos)
    return;
  throw Error(ExitCode::usage, fmt::format("{} '{}'", flag, value),
              "letters, digits and _-.,:=/@%+ alone");
}

// A path as sbatch takes it.
std::string directive_path(const fs::path& path) {
  const std::string text = path.string();
  if (text.find_first_of("\"\n\\") != std::string::npos) {
    throw Error(ExitCode::usage, fmt::format("the folder '{}'", path.string()),
                "a name without quotes, backslashes and line ends, for sbatch cannot read them",
                "choose another --results");
  }
  return "\"" + text + "\"";
}
// Where % begins a pattern.
std::string without_patterns(const fs::path& path) {
  std::string text;
  for (const char c : path.string()) text += c == '%' ? "%%" : std::string(1, c);
  return text;
}

std::string directives(const SlurmJob& job) {
  std::vector<std::string> lines = {fmt::format("--job-name={}", job.name)};
  if (!job.partition.empty()) lines.push_back("--partition=" + job.partition);
  lines.push_back(fmt::format("--array=0-{}", job.array - 1));
  if (job.nodes > 0) lines.back() += fmt::format("%{}", job.nodes);
  lines.emplace_back("--ntasks=1");
  lines.push_back(fmt::format("--cpus-per-task={}", job.threads));
  if (job.gpus > 0) lines.push_back(fmt::format("--gpus-per-node={}", job.gpus));
  lines.push_back("--time=" + job.time);
  lines.push_back(fmt::format("--signal=INT@{}", seconds_to_save));
  lines.insert(lines.end(), {"--requeue", "--open-mode=append"});
  lines.push_back("--chdir=" + directive_path(job.directory));
  lines.push_back("--output=" + directive_path(fs::path(without_patterns(slurm_folder(job))) /
                                               slurm_log(job).filename()));
  lines.insert(lines.end(), job.more.begin(), job.more.end());
  std::string text;
  for (const std::string& line : lines) text += "#SBATCH " + line + "\n";
  return text;
}

constexpr const char* session = R"sh(#
# Each task of the array trains the runs of a shard of {0} that are missing, and
# puts itself back into the queue until none is.
# Finished runs are not trained again. {1} seconds before the time is up Slurm interrupts posattn,
# which saves checkpoints for the next session. A session that records no further epoch is the last.
# Written by:
#   {2}

posattn={3}
set -- {4} --shard "$SLURM_ARRAY_TASK_ID/{5}"

survey() {{ "$posattn" "$@" --dry-run --json; }}
number() {{ sed -n "s/^    \"$1\": \([0-9]*\).*/\1/p"; }}  # missing or epochs, of all runs
keep() {{ [ "$code" -ne 0 ] || code=$1; }}  # the first failure

before=$(survey "$@" | number epochs)
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" "$posattn" "$@" --threads "$SLURM_CPUS_PER_TASK"
code=$?
after=$(survey "$@")
missing=$(echo "$after" | number missing)
epochs=$(echo "$after" | number epochs)
echo "$(date): code $code; missing runs: $missing; epochs: $before before, $epochs now"

if [ "${{missing:-1}}" -gt 0 ]; then
  if [ "${{epochs:-0}}" -gt "${{before:-0}}" ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID" && exit 0
  fi
  echo "stopped: runs are missing and this session brought them no further; see above" >&2
  keep 1
fi

# Shards are brought together; the last task has the table and the figure.
set -- {4}
exec 9>{6} && flock 9  # one task at a time
"$posattn" merge {7} || keep $?
if [ "$(survey "$@" | number missing)" = 0 ]; then
  "$posattn" "$@" --threads "$SLURM_CPUS_PER_TASK" || keep $?
fi
exit "$code"
)sh";

}  // namespace

int64_t slurm_seconds(std::string_view time) {
  const std::string expected =
      "minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes or "
      "days-hours:minutes:seconds";
  const std::size_t dash = time.find('-');
  const bool has_days = dash != std::string_view::npos;
  const auto days = has_days ? numbers_of(time.substr(0, dash)) : std::vector<int64_t>{0};
  auto rest = numbers_of(has_days ? time.substr(dash + 1) : time);
  if (!days || days->size() != 1 || !rest || rest->size() > 3) throw bad_time(time, expected);
  // What the parts are: after days from hours on, otherwise minutes stand alone or before seconds.
  const bool from_hours = has_days || rest->size() == 3;
  if (!from_hours) rest->insert(rest->begin(), 0);
  rest->resize(3);
  const int64_t seconds = (*days)[0] * 86'400 + (*rest)[0] * 3'600 + (*rest)[1] * 60 + (*rest)[2];
  if (seconds < shortest_time) {
    throw bad_time(time, fmt::format("at least five minutes, of which {} seconds are for saving "
                                     "checkpoints",
                                     seconds_to_save));
  }
  return seconds;
}

void validate(const SlurmJob& job) {
  slurm_seconds(job.time);
  require_plain("--partition", job.partition);
  for (const std::string& option : job.more) {
    require_plain("--sbatch", option);
    if (option.starts_with("--array") || option.starts_with("-a")) {
      throw Error(ExitCode::usage, fmt::format("--sbatch '{}'", option),
                  "no array: each of its tasks would train the same runs",
                  "posattn's own --array makes a shard of each task");
    }
    if (option.starts_with('-')) continue;
    throw Error(ExitCode::usage, fmt::format("--sbatch '{}'", option),
                "one option as sbatch has it", "as in --sbatch=--account=mine");
  }
  require_least("--array", job.array, 1, 100'000);
  require_least("--nodes", job.nodes, 0, 100'000);
  require_least("--gpus", job.gpus, 0, 64);
  require_least("--threads", job.threads, 1, 4'096);
  if (job.gpus > 1) {
    throw Error(ExitCode::usage, fmt::format("--gpus {}", job.gpus),
                "--gpus 1: a task of the array trains on one GPU",
                fmt::format("for as many GPUs: --gpus 1 --array {}", job.gpus));
  }
  if (job.nodes > job.array) {
    throw Error(ExitCode::usage, fmt::format("--nodes {} with --array {}", job.nodes, job.array),
                "at least a shard for each node", fmt::format("--array {}", job.nodes));
  }
}

fs::path slurm_folder(const SlurmJob& job) { return job.results / "slurm"; }

fs::path slurm_log(const SlurmJob& job) { return slurm_folder(job) / "%x-%A_%a.log"; }

std::string slurm_script(const SlurmJob& job) {
  validate(job);
  const std::string arguments = shell_command(job.arguments);
  return "#!/bin/sh\n" + directives(job) +
         fmt::format(session, job.name, seconds_to_save, job.command_line,
                     shell_command({job.program.string()}), arguments, job.array,
                     shell_command({(slurm_folder(job) / "merge.lock").string()}),
                     shell_command({job.results.string()}));
}

}  // namespace posattn
