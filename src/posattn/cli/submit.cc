// posattn submit

#include "posattn/base/command.h"
#include "posattn/base/file.h"
#include "posattn/base/text.h"
#include "posattn/benchmark/steps.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/grid_choice.h"
#include "posattn/cli/machine.h"
#include "posattn/experiments/experiment.h"
#include "posattn/experiments/runner.h"
#include "posattn/experiments/slurm_script.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

struct SubmitFlags : GridChoice {
  SlurmJob job;
  std::optional<int64_t> nodes;
  bool dry_run = false, json = false;
};

// Slurm's own names of jobs are free, but the script and the log are called like them.
std::string job_name(std::string name) {
  for (char& c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (letter <= ' ' || letter > '~' ||
        std::string_view("'\"\\%$`#/").find(c) != std::string::npos)
      c = '_';
  }
  return name;
}

// The job as Slurm is to have it.
SlurmJob job_of(const SubmitFlags& flags, const Experiment& chosen,
                const std::vector<std::string>& command_line) {
  SlurmJob job = flags.job;
  if (flags.nodes && *flags.nodes < 1) {  // 0 is Slurm's own choice
    throw Error(ExitCode::usage, fmt::format("--nodes {}", *flags.nodes),
                "a number of tasks from 1", "leave --nodes out for as many as Slurm likes");
  }
  job.nodes = flags.nodes.value_or(0);
  job.name = job_name(chosen.output_name);
  job.program = this_program();
  job.directory = fs::current_path();
  job.results = fs::absolute(flags.results).lexically_normal();
  job.arguments = {"reproduce", flags.experiment};
  for (const std::string& word : chosen_words(flags)) job.arguments.push_back(word);
  job.arguments.insert(job.arguments.end(), {"--results", job.results.string()});
  job.command_line = printable(shell_command(command_line));
  return job;
}

// "123" of sbatch --parsable, which on some clusters adds ";cluster".
std::string submitted(const fs::path& script) {
  std::string answer = run_command({"sbatch", "--parsable", script.string()});
  answer.erase(std::min(answer.size(), answer.find_first_of(";\n")));
  if (answer.empty() || answer.find_first_not_of("0123456789") != std::string::npos) {
    throw Error(ExitCode::failed, fmt::format("sbatch said '{}'", printable(answer)),
                "the number of a job");
  }
  return answer;
}

std::string submit_json(const SlurmJob& job, const fs::path& script, const std::string& id,
                        const GridSurvey& found) {
  const Json document = {{"experiment", job.name},
                         {"missing", found.missing()},
                         {"script", script.string()},
                         {"log", slurm_log(job).string()},
                         {"job", id}};
  return json_text(document);
}

std::string submit_text(const SlurmJob& job, const fs::path& script, const std::string& id) {
  std::vector<std::string> survey = {"posattn"};
  survey.insert(survey.end(), job.arguments.begin(), job.arguments.end());
  survey.emplace_back("--dry-run");
  return fmt::format("job {}: {}\nlog: {}\n\nnext:  squeue --job {}\n       {}\n", id,
                     script.string(), slurm_log(job).string(), id, shell_command(survey));
}

// Device and precision are decided here: the machines of the job may be unlike this one.
void settle_device(SubmitFlags& flags) {
  ExperimentChanges& changes = flags.changes;
  if (flags.job.gpus == 0) {
    if (changes.device.empty() || changes.device == "auto") changes.device = "cpu";
    if (changes.device == "cpu") return;
    throw Error(ExitCode::usage, "--device cuda without --gpus", "--gpus 1",
                "a task of the job has one GPU then");
  }
  // A job that was given a GPU must not silently run without it.
  if (changes.device.empty() || changes.device == "auto") changes.device = "cuda";
  if (changes.device != "cuda") {
    throw Error(ExitCode::usage,
                fmt::format("--gpus {} with --device {}", flags.job.gpus, changes.device),
                "--device cuda, or no --gpus");
  }
  if (changes.precision.empty()) {
    changes.precision = precision_to_train(chosen_part(flags), flags.results);
  }
}

ExitCode submit(const SubmitFlags& given, const CommandLine& line) {
  SubmitFlags flags = given;
  settle_device(flags);
  const Experiment chosen = chosen_part(flags);
  const SlurmJob job = job_of(flags, chosen, line.arguments);
  const std::string text = slurm_script(job);
  if (flags.dry_run) {
    write_output(text);
    return ExitCode::done;
  }
  const GridSurvey found = whole_of(survey(job.results, runs_of(chosen)));
  write_notice(survey_line(found, flags.results));
  const fs::path script = slurm_folder(job) / (job.name + ".sh");
  if (found.missing() == 0) {
    throw Error(ExitCode::usage, fmt::format("nothing is missing of {}", job.name), "",
                "its table and figure: " + shell_command({"posattn", "reproduce", flags.experiment,
                                                          "--results", flags.results}));
  }
  create_folder(slurm_folder(job));
  write_file(script, text);
  if (find_on_path("sbatch").empty()) {
    throw Error(
        ExitCode::failed, "there is no sbatch on this machine: nothing is submitted",
        "a machine of a Slurm cluster",
        "the script is written; on the cluster: " + shell_command({"sbatch", script.string()}));
  }
  const std::string id = submitted(script);
  write_output(flags.json ? submit_json(job, script, id, found) : submit_text(job, script, id));
  return ExitCode::done;
}

void add_submit_options(CLI::App& command, SubmitFlags& flags) {
  SlurmJob& job = flags.job;
  add_grid_options(command, flags);
  option(command, "--partition", job.partition, "TEXT",
         "Partition; the cluster's default without it");
  option(command, "--array", job.array, "INT [1]", "Shards, each a task of the array");
  option(command, "--nodes", flags.nodes, "INT", "Tasks at a time; without it as Slurm likes");
  option(command, "--gpus", job.gpus, "INT [0]", "GPUs of each task: 0 or 1");
  option(command, "--threads", job.threads, "INT [4]", "Cores of each task, and threads on them");
  option(command, "--time", job.time, "TIME [4:00:00]",
         "Time limit of a session, as Slurm writes it");
  option(command, "--sbatch", job.more, "OPTION", "A further option of sbatch; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_flag("--dry-run", flags.dry_run, "Print the script; write and submit nothing");
  add_json_flag(command, flags.json);
}

const Command registered_submit(
    {.name = "submit",
     .group = Group::paper,
     .summary = "Train an experiment on a Slurm cluster: write a batch script and submit it",
     .examples = {"posattn submit value-range --partition gpu --array 8 --gpus 1 --time 4:00:00",
                  "posattn submit value-range --array 16 --threads 8 --time 1-0 --results DIR",
                  "posattn submit value-range --quick --array 2 --dry-run"},
     .details = "Each task of the job array trains one shard (docs/scaling.md). It returns to the "
                "queue until its shard is complete, or until a session makes no progress. The last "
                "task to end draws the figure. Script and logs are in DIR/slurm. Without sbatch on "
                "this machine the script is written and the exit code is 1."},
    add_submit_options, submit);

}  // namespace
}  // namespace posattn
