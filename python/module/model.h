// A model between calls: what follows from its weights is prepared once and kept.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "posattn/model.h"
#include "posattn/network.h"

namespace posattn::python {

// Python's Model. Weights are handed out as arrays over the model's own numbers; while somebody has
// such an array he may change them, so the network is prepared for every call, and once more after
// the last array is gone. Calls from several threads wait for each other.
class HeldModel {
 public:
  explicit HeldModel(Model model);

  // For who computes with it elsewhere; it then lives on after close(). This and all below throw
  // Error(usage) when the model was closed.
  std::shared_ptr<Model> shared() const;
  void close();
  bool is_closed() const { return model_ == nullptr; }

  py::array run(const py::object& x, const py::object& tokens, int threads);
  py::array attention(const py::object& x, const py::object& tokens);
  // The page that steps through one sample.
  std::string steps(const py::object& x, const py::object& tokens) const;
  std::pair<double, py::dict> gradient(const py::object& x, const py::object& y,
                                       const py::object& tokens, const py::object& mask,
                                       int threads);
  py::dict shapes() const;                       // of the parameters, by name
  py::array parameter(const std::string& name);  // throws KeyError
  // Throws Error(usage) for another value of what is not trained: routes, fixed codes, absent
  // biases.
  void set_parameter(const std::string& name, const py::object& values);

 private:
  struct Samples;  // with the arrays that hold them
  Samples samples_of(const Model& model, const py::object& x, const py::object& tokens) const;
  // With the lock held: the network with this many threads, as it is or prepared for the length.
  Network& network(const Model& model, int threads);
  Network& prepared(const std::shared_ptr<Model>& model, int nodes, int threads);
  const TensorInfo& tensor(const Model& model, const std::string& name) const;

  std::shared_ptr<Model> model_;  // null: closed
  std::mutex mutex_;              // of what follows
  std::optional<Network> network_;
  int threads_ = 0, prepared_nodes_ = 0;
  std::atomic<bool> lent_ = false;  // arrays over the weights were there since the last call
};

// By name, arrays over the gradient, which they keep alive.
py::dict gradient_arrays(const std::shared_ptr<Parameters<float>>& gradient);

}  // namespace posattn::python
