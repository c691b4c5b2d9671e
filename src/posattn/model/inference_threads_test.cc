// Several threads with one Inference, for every engine: each answer is the one of a network that
// nobody else has. `./check --full` runs this under the thread sanitizer.
#include <gtest/gtest.h>

#include <thread>

#include "posattn/model/inference.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

struct Question {
  testing::RandomBatch data;
  std::vector<float> answer, attention;  // attention: of a batch of one sample
};

constexpr int callers = 4;

// Lengths n, n - 1, ... (more of them than are kept), one sample and many.
std::vector<Question> questions_for(const Model& model, int lengths) {
  std::vector<Question> questions;
  RandomStream random(5, Purpose::test_data, 0, 0);
  for (int k = 0; k < 2 * lengths; ++k) {
    const int64_t samples = k % 2 == 0 ? 1 : 1 + 600 / model.spec.real_nodes;
    Question question{
        testing::RandomBatch(model.spec, samples, model.spec.real_nodes - k / 2, random), {}, {}};
    const Batch batch = question.data.batch();
    question.answer.resize(batch.samples * batch.real_nodes * model.spec.output_columns);
    const NetworkOptions options{.path = path_for(model)};
    Network(model.spec, options).forward(model.parameters, batch, question.answer);
    if (batch.samples == 1) {
      question.attention = Network(model.spec, options).attention(model.parameters, batch);
    }
    questions.push_back(std::move(question));
  }
  return questions;
}

// Every caller begins with another question. Returns how many answers were wrong.
int wrong_answers(const Model& model, const std::vector<Question>& questions, int threads,
                  int rounds) {
  Inference inference(model, threads);
  std::vector<int> wrong(callers);
  std::vector<std::thread> running;
  running.reserve(callers);
  for (int caller = 0; caller < callers; ++caller) {
    running.emplace_back([&, caller] {
      for (size_t k = 0; k < rounds * questions.size(); ++k) {
        const Question& question = questions[(caller + k) % questions.size()];
        const Batch batch = question.data.batch();
        wrong[caller] += inference.run(batch) != question.answer;
        if (k % 5 == 0 && batch.samples == 1) {
          wrong[caller] += inference.attention(batch) != question.attention;
        }
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  return wrong[0] + wrong[1] + wrong[2] + wrong[3];
}

void expect_right_answers(const ModelSpec& spec, int lengths, int rounds) {
  SCOPED_TRACE(to_json(spec));
  Model model{spec, testing::random_parameters(spec, 3), {}};
  RandomStream random(6, Purpose::test_data, 0, 0);
  for (const TensorInfo& tensor : model.parameters.layout().tensors()) {
    if (!tensor.integers) continue;
    for (float& route : model.parameters.slice(tensor)) {
      route = static_cast<float>(random.below(spec.nodes()));
    }
  }
  const std::vector<Question> questions = questions_for(model, lengths);
  for (const int threads : {1, 2}) {
    EXPECT_EQ(wrong_answers(model, questions, threads, rounds), 0) << threads << " threads";
  }
}

ModelSpec small_spec(std::string_view preset) {
  ModelSpec spec;
  spec.width = 12;
  spec.depth = 2;
  spec.mlp_width = 10;
  apply_preset(preset, spec);
  return resolve(spec);
}

TEST(InferenceOfThreads, Tiles) {
  for (const char* preset : {"positional", "standard", "m2", "m5"}) {
    expect_right_answers(small_spec(preset), 1, 10);
    expect_right_answers(small_spec(preset), 6, 1);
  }
}

TEST(InferenceOfThreads, PlainExecutor) {
  for (const char* preset : {"positional", "standard"}) {
    ModelSpec spec = small_spec(preset);
    spec.normalisation = Normalisation::before;
    expect_right_answers(spec, 6, 1);
  }
}

TEST(InferenceOfThreads, Routes) {
  for (const int nodes : {8, 1200}) {
    ModelSpec spec = small_spec("positional");
    spec.real_nodes = nodes;
    spec.encoding_size = nodes + 1;
    spec.scores = Scores::routes;
    expect_right_answers(resolve(spec), 1, nodes == 8 ? 10 : 1);
  }
}

// Attention without its matrix: by distance, and of a low rank.
TEST(InferenceOfThreads, ManyNodes) {
  ModelSpec spec = small_spec("positional");
  spec.real_nodes = 600;
  spec.encoding = Encoding::sinusoidal;
  spec.encoding_size = 8;
  expect_right_answers(resolve(spec), 2, 1);
  apply_preset("relative", spec);
  expect_right_answers(resolve(spec), 2, 1);
}

}  // namespace
}  // namespace posattn
