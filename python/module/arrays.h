// NumPy arrays as the library reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "module.h"
#include "posattn/model/spec/spec.h"

namespace posattn::python {

using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;
using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Integers = py::array_t<int32_t, py::array::c_style | py::array::forcecast>;

// `object` as an array of this type: itself where it is one already, else a copy. Throws
// Error(data), which begins with `what`, for anything but numbers; for tokens and labels also where
// they are not whole.
Floats floats_of(const py::object& object, const std::string& what);
Doubles doubles_of(const py::object& object, const std::string& what);
Integers integers_of(const py::object& object, const std::string& what);

template <class T, int flags>
std::span<const T> numbers(const py::array_t<T, flags>& array) {
  return {array.data(), static_cast<size_t>(array.size())};
}

// "(2, 8)"
std::string shape_text(const py::array& array);

// An array over numbers that `owner` keeps alive; empty owner: the array has its own.
template <class T, class Owner>
py::array_t<T> array_over(const std::vector<int64_t>& shape, T* data,
                          std::shared_ptr<Owner> owner) {
  const py::capsule keeper(new std::shared_ptr<Owner>(std::move(owner)), [](void* pointer) {
    delete static_cast<std::shared_ptr<Owner>*>(pointer);
  });
  return py::array_t<T>(shape, data, keeper);
}

template <class T>
py::array_t<T> array_of(const std::vector<int64_t>& shape, std::vector<T> values) {
  auto owner = std::make_shared<std::vector<T>>(std::move(values));
  T* data = owner->data();
  return array_over(shape, data, std::move(owner));
}

// Samples in one of the forms that people write: [nodes], [samples, nodes], and with the columns of
// a node as a last axis.
struct SampleForm {
  int64_t samples = 1;
  int nodes = 0;
  bool has_samples = false;    // an axis of samples
  bool keeps_columns = false;  // an axis for the one column that a node has

  // Of an answer with so many columns a node: one column has an axis only where x gave it one.
  std::vector<int64_t> answer_shape(int columns) const;
};
// Numbers with `columns` a node. Throws Error(data).
SampleForm form_of_numbers(const py::array& array, int columns, const std::string& what);

}  // namespace posattn::python
