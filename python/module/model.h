// A model between calls: what follows from its weights is prepared once and kept.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "posattn/model.h"
#include "posattn/network.h"

namespace posattn::python {

// Python's Model. Weights are handed out as arrays over the model's own numbers; while somebody has
// such an array he may change them, so the network is prepared for every call, and once more after
// the last array is gone. Calls from several threads compute at the same time; set_parameter waits
// for those that compute.
//
// x holds the numbers of nodes. `given` has what else samples hold, or None: tokens, pairs and
// pair_classes.
class HeldModel {
 public:
  explicit HeldModel(Model model);

  // For who computes with it elsewhere; it then lives on after close(). This and all below throw
  // Error(usage) when the model was closed.
  std::shared_ptr<Model> shared() const;
  void close();
  bool is_closed() const { return model_ == nullptr; }

  py::array run(const py::object& x, const py::dict& given, int threads);
  py::array attention(const py::object& x, const py::dict& given);
  // (name, shape) of every activation of such samples.
  std::vector<std::pair<std::string, std::vector<int64_t>>> activations(
      const py::object& x, const py::dict& given) const;
  // hook(name, array) for each of them; the array is valid during the call.
  py::array run_with_hook(const py::object& x, const py::dict& given, const py::object& hook);
  // The page that steps through one sample.
  std::string steps(const py::object& x, const py::dict& given) const;
  std::pair<double, py::dict> gradient(const py::object& x, const py::object& y,
                                       const py::dict& given, const py::object& mask, int threads);
  py::dict shapes() const;                       // of the parameters, by name
  py::array parameter(const std::string& name);  // throws KeyError
  // Throws Error(usage) for another value of what is not trained: routes, fixed codes, absent
  // biases.
  void set_parameter(const std::string& name, const py::object& values);

 private:
  struct Samples;  // with the arrays that hold them
  Samples samples_of(const Model& model, const py::object& x, const py::dict& given) const;
  static void add_pairs(const Model& model, const py::dict& given, Samples& samples);
  // For as long as a call computes: no weight is set meanwhile.
  std::shared_lock<std::shared_mutex> computing();
  // It has the weights as they are now; 0 threads: as many as in the last call.
  std::shared_ptr<const Inference> inference(const std::shared_ptr<Model>& model, int threads = 0);
  const TensorInfo& tensor(const Model& model, const std::string& name) const;

  std::shared_ptr<Model> model_;  // null: closed
  std::shared_mutex weights_;     // shared by those that compute
  std::mutex turns_;              // at weights_: who sets one goes before calls that come later
  std::mutex mutex_;              // of what follows
  std::shared_ptr<const Inference> inference_;
  int threads_ = 1;
  std::weak_ptr<const std::shared_ptr<Model>> loan_;  // what arrays over the weights keep alive
  bool lent_ = false;                                 // there were such arrays since the last call
};

// By name, arrays over the gradient, which they keep alive.
py::dict gradient_arrays(const std::shared_ptr<Parameters<float>>& gradient);

}  // namespace posattn::python
