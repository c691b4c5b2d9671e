#include "posattn/cli/learning.h"

#include "posattn/cli/commands.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"
#include "posattn/report/page/page_parts.h"

namespace posattn {
namespace {

Json as_json(const LearningVerification& verification, const LearningProgram& program,
             bool in_double) {
  Json scales = Json::array();
  for (const LearningScale& scale : verification.scales) {
    scales.push_back({{"c", scale.c},
                      {"samples", scale.samples},
                      {"mismatches", scale.mismatches},
                      {"largest_error", scale.largest_error},
                      {"allowed", verification.part}});
  }
  Json document = {{"program", program.algorithm().name},
                   {"length", program.nodes()},
                   {"precision", in_double ? "double" : "fp32"},
                   {"holds", verification.holds()},
                   {"scales", scales}};
  if (!verification.other_weights.empty()) document["other_weights"] = verification.other_weights;
  if (const auto& wrong = verification.wrong) {
    document["counter_example"] = {{"input", wrong->sample},
                                   {"expected", wrong->expected},
                                   {"found", wrong->found},
                                   {"bound", wrong->bound}};
  }
  return document;
}

// "in-context-ridge, 10 examples: 21 layers, 3 heads, ..."
std::string learning_summary(const LearningProgram& program, const Model& model) {
  const ModelSpec& spec = model.spec;
  return fmt::format("{}, {}: {}, {}, {}, {}, {}", program.algorithm().name,
                     plural(program.examples(), "example"), plural(spec.depth, "layer"),
                     plural(spec.heads, "head"), plural(spec.width, "column"),
                     plural(spec.mlp_width, "hidden unit"),
                     plural(model.parameters.layout().parameter_count(), "parameter"));
}

}  // namespace

ExitCode compile_learning(const LearningProgram& program, const std::string& output, bool json) {
  const Model model = compile(program);
  const std::string path =
      output.empty() ? std::string(program.algorithm().name) + ".safetensors" : output;
  write_result(path, model_bytes(model));
  if (is_standard_output(path)) return ExitCode::done;
  if (json) {
    Json parameters = Json::object();
    for (const ProgramParameter& parameter : program.parameters()) {
      parameters[parameter.name] = parameter.value;
    }
    write_output(json_text({{"model", path},
                            {"program", program.algorithm().name},
                            {"length", program.nodes()},
                            {"set", parameters},
                            {"layers", model.spec.depth},
                            {"heads", model.spec.heads},
                            {"columns", model.spec.width},
                            {"hidden", model.spec.mlp_width},
                            {"parameters", model.parameters.layout().parameter_count()}}));
    return ExitCode::done;
  }
  std::string text = learning_summary(program, model) + "\n";
  for (const ProgramParameter& parameter : program.parameters()) {
    text += fmt::format("  {}\n", to_text(parameter));
  }
  write_output(text + fmt::format("written to {0}\nnext:  posattn verify {0}\n", path));
  return ExitCode::done;
}

ExitCode verify_learning(const LearningRequest& request, const std::string& path, bool json) {
  const LearningVerification verification = verify(request);
  const LearningProgram& program = *request.program;
  const Json document = as_json(verification, program, request.in_double);
  write_output(json ? json_text(document)
                    : fmt::format("{}, {}, in {}: against the same steps in plain double\n{}{}",
                                  program.algorithm().name, plural(program.examples(), "example"),
                                  document["precision"].get<std::string>(),
                                  json_table(document["scales"],
                                             {{"y times", "c"},
                                              {"inputs", "samples"},
                                              {"mismatches", "mismatches"},
                                              {"largest error", "largest_error"},
                                              {"rounding allows", "allowed"}},
                                             0),
                                  verification.holds()
                                      ? "errors as parts of |x| max |w|; no mistake\n"
                                      : ""));
  if (verification.holds()) return ExitCode::done;
  flush_output();
  if (const auto& wrong = verification.wrong) {
    throw Error(ExitCode::verification,
                fmt::format("{} does not learn as {} says", path, program.algorithm().name),
                fmt::format("the answer {} within {:.2g}", wrong->expected, wrong->bound),
                fmt::format("its answer: {}", wrong->found));
  }
  throw Error(ExitCode::verification,
              fmt::format("{} is not what `posattn compile` makes of {}: it has {}", path,
                          program.algorithm().name, verification.other_weights),
              "the compiler's weights", "--any-weights accepts others if no input shows a mistake");
}

}  // namespace posattn
