// posattn doctor

#include <cstdlib>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/results/manifest.h"

namespace posattn {
namespace {

// A name that may be missing.
Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::string glibc_version() {
#ifdef __GLIBC__
  return gnu_get_libc_version();
#else
  return "none";
#endif
}

Json findings(const Machine& machine) {
  Json problems = Json::array();
  if (!machine.blas_problem.empty()) problems.push_back(machine.blas_problem);
  Json found = build_json();
  found.update(Json{
      {"cpu", machine.cpu},
      {"cpu_features", machine.features},
      {"instruction_set", machine.instruction_set},
      {"cores", machine.cores},
      {"default_threads", thread_count(0)},
      {"blas",
       {{"config", machine.blas},
        {"kernel", machine.blas_kernel},
        {"variant", machine.blas_variant},
        {"products", machine.products}}},
      {"cuda", device_json(machine.gpu)},
      {"gnuplot", or_null(find_gnuplot())},
      {"libraries",
       {{"glibc", glibc_version()},
        {"fmt",
         fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
        {"CLI11", CLI11_VERSION},
        {"nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                      NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)}}},
      {"problems", problems},
  });
  return found;
}

std::string cuda_text(const Json& cuda) {
  if (!cuda["built"].get<bool>()) return "not built";
  if (!cuda["usable"].get<bool>()) {
    const std::string hint = cuda["hint"];
    return fmt::format("not usable: {}{}{}", cuda["problem"].get<std::string>(),
                       hint.empty() ? "" : "; ", hint);
  }
  return fmt::format("{}, {:.0f} GB, compute capability {}; driver for CUDA {}, built with {}",
                     cuda["name"].get<std::string>(), cuda["memory_gb"].get<double>(),
                     cuda["compute_capability"].get<std::string>(),
                     cuda["driver"].get<std::string>(), cuda["toolkit"].get<std::string>());
}

// "positional: fused-positional to 8 nodes, fused-medium to 64; standard: ...; others: general"
std::string engines_text(const Json& cuda) {
  std::string text, model;
  for (const auto& range : cuda["engines"]) {
    const bool same = range["model"] == model;
    model = range["model"];
    text += same ? ", " : fmt::format("{}{}: ", text.empty() ? "" : "; ", model);
    text += fmt::format("{} to {} nodes", range["engine"].get<std::string>(),
                        range["nodes"][1].get<int>());
  }
  return text + "; other models: general" +
         (cuda["tried"].get<bool>() ? "" : "; untried on hardware of this compute capability");
}

std::string doctor_text(const Json& found) {
  std::string text;
  const auto line = [&text](std::string_view name, const std::string& value) {
    text += fmt::format("{:<16}{}\n", name, value);
  };
  std::string features, libraries;
  for (const auto& feature : found["cpu_features"]) features += feature.get<std::string>() + " ";
  for (const auto& [name, version] : found["libraries"].items()) {
    libraries += (libraries.empty() ? "" : ", ") + name + " " + version.get<std::string>();
  }
  line("posattn",
       fmt::format("{} (commit {}, {}, {})", found["version"].get<std::string>(),
                   found["commit"].get<std::string>(), found["compiler"].get<std::string>(),
                   found["build_type"].get<std::string>()));
  line("CPU", found["cpu"]);
  line("features", features);
  line("kernels", fmt::format("{} ({})", found["instruction_set"].get<std::string>(),
                              std::getenv("POSATTN_ISA") == nullptr ? "chosen for this CPU"
                                                                    : "asked for by POSATTN_ISA"));
  line("cores",
       fmt::format("{}; {} thread{} unless --threads says otherwise", found["cores"].get<int>(),
                   found["default_threads"].get<int>(), found["default_threads"] == 1 ? "" : "s"));
  line("BLAS",
       fmt::format("{}; {} variant, {} kernels{}", found["blas"]["config"].get<std::string>(),
                   found["blas"]["variant"].get<std::string>(),
                   found["blas"]["kernel"].get<std::string>(),
                   found["blas"]["products"] == "own"
                       ? "; large products in float by our own kernels, which are faster here"
                       : ""));
  line("CUDA", cuda_text(found["cuda"]));
  if (!found["cuda"]["engines"].empty()) line("engines", engines_text(found["cuda"]));
  line("gnuplot", found["gnuplot"].is_null()
                      ? "not found: it draws the figures of pages and experiments (apt install "
                        "gnuplot-nox)"
                      : found["gnuplot"].get<std::string>());
  line("libraries", libraries);
  for (const auto& problem : found["problems"]) line("PROBLEM", problem);
  if (found["problems"].empty()) text += "\nEverything needed for training is here.\n";
  return text;
}

ExitCode doctor(const JsonFlag& flags) {
  const Json found = findings(find_machine());
  write_output(flags.json ? json_text(found) : doctor_text(found));
  return found["problems"].empty() ? ExitCode::done : ExitCode::failed;
}

const Command registered_doctor(
    {.name = "doctor",
     .group = Group::machine,
     .summary = "Show the processor, libraries and GPU that the program uses",
     .examples = {"posattn doctor", "posattn doctor --json"},
     .details =
         "The exit code is 1 when something found would make results wrong. POSATTN_ISA=x86-64-v2, "
         "x86-64-v3 or x86-64-v4 chooses a lower instruction set than the best one. "
         "POSATTN_PRODUCTS=openblas or portable chooses the library of large products."},
    add_json_flag_alone, doctor);

}  // namespace
}  // namespace posattn
