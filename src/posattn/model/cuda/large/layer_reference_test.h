// One layer of a larger model in double, for the tests of its kernels.
#pragma once

#include <cmath>
#include <vector>

#include "posattn/kernels/cuda/fleet.h"

namespace posattn::cuda::large {

struct Case {
  int nodes, real_nodes, heads, columns, hidden;
  bool from_data;
  bool first_layer;
  int samples;  // places per slot
  std::vector<SlotStep> steps;
  bool positions_per_slot = false;
};

// Places of one layer's weights, behind something else and with gaps, as in FoldedLayout.
struct Places {
  explicit Places(const Case& c)
      : maps_size((1 + c.heads) * c.hidden * c.columns),
        scores_size(c.from_data ? c.heads * c.columns * c.columns : 0),
        bias_size(c.from_data ? c.heads * c.columns : 0),
        attention_size(c.from_data ? 0 : c.heads * c.nodes * c.nodes) {
    constant = maps + padded(maps_size);
    scores = constant + padded(c.hidden);
    score_bias = scores + padded(scores_size);
    attention = score_bias + padded(bias_size);
    size = attention + padded(attention_size) + 16;
  }
  static int padded(int count) { return (count + 15) / 16 * 16; }
  int maps_size, scores_size, bias_size, attention_size;
  int maps = 32, constant, scores, score_bias, attention, size;
};

// What a slot is given and what comes out, each as the contract shapes it.
struct Slot {
  SlotStep step;
  std::vector<float> inputs, positions, rows, folded, errors;
  std::vector<float> output, previous_errors, gradients;  // gradients: the groups added up
  std::vector<float> partials;
};

inline bool is_heard(const Case& c, const SlotStep& step, int node) {
  return node < step.real_nodes || node >= c.real_nodes;
}

// The layer in double, each formula as it stands in folded_stage.h and by the chain rule.
class Reference {
 public:
  Reference(const Case& c, const Slot& slot)
      : output(slot.output.size()),
        previous_errors(slot.previous_errors.size()),
        gradients(slot.folded.size()),
        c_(c),
        slot_(slot),
        places_(c) {
    for (int sample = 0; sample < slot.step.samples; ++sample) add_sample(sample);
  }

  std::vector<double> output, previous_errors, gradients;

 private:
  using Matrix = std::vector<std::vector<double>>;

  static Matrix zeros(int rows, int columns) { return Matrix(rows, std::vector<double>(columns)); }

  double weight(int map, int out, int in) const {
    return slot_.folded[places_.maps + (map * c_.hidden + out) * c_.columns + in];
  }
  double score(int head, int i, int j) const {
    return slot_.folded[places_.scores + (head * c_.columns + i) * c_.columns + j];
  }

  Matrix input(int sample) const {
    Matrix s = zeros(c_.nodes, c_.columns);
    for (int i = 0; i < c_.nodes; ++i) {
      for (int k = 0; k < c_.columns; ++k) {
        s[i][k] = !c_.first_layer ? slot_.rows[(sample * c_.nodes + i) * c_.columns + k]
                  : k == 0        ? slot_.inputs[i * c_.samples + sample]
                                  : slot_.positions[i * (c_.columns - 1) + k - 1];
      }
    }
    return s;
  }

  // t = s G + g
  Matrix queries(int head, const Matrix& s) const {
    Matrix t = zeros(c_.nodes, c_.columns);
    for (int i = 0; i < c_.nodes; ++i) {
      for (int k = 0; k < c_.columns; ++k) {
        t[i][k] = slot_.folded[places_.score_bias + head * c_.columns + k];
        for (int m = 0; m < c_.columns; ++m) t[i][k] += s[i][m] * score(head, m, k);
      }
    }
    return t;
  }

  Matrix attention(int head, const Matrix& s) const {
    Matrix a = zeros(c_.nodes, c_.nodes);
    const Matrix t = c_.from_data ? queries(head, s) : Matrix();
    for (int i = 0; i < c_.nodes; ++i) {
      double sum = 0;
      for (int j = 0; j < c_.nodes; ++j) {
        if (!c_.from_data) {
          a[i][j] = slot_.folded[places_.attention + (head * c_.nodes + i) * c_.nodes + j];
        } else if (is_heard(c_, slot_.step, j)) {
          for (int k = 0; k < c_.columns; ++k) a[i][j] += t[i][k] * s[j][k];
          a[i][j] = std::exp(a[i][j]);
          sum += a[i][j];
        }
      }
      for (double& value : a[i]) value /= c_.from_data ? sum : 1;
    }
    return a;
  }

  static Matrix product(const Matrix& x, const Matrix& y) {
    Matrix out = zeros(static_cast<int>(x.size()), static_cast<int>(y[0].size()));
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t k = 0; k < y.size(); ++k) {
        for (size_t j = 0; j < y[0].size(); ++j) out[i][j] += x[i][k] * y[k][j];
      }
    }
    return out;
  }
  static Matrix transposed(const Matrix& x) {
    Matrix out = zeros(static_cast<int>(x[0].size()), static_cast<int>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < x[0].size(); ++j) out[j][i] = x[i][j];
    }
    return out;
  }
  static void add(Matrix& to, const Matrix& from) {
    for (size_t i = 0; i < to.size(); ++i) {
      for (size_t j = 0; j < to[0].size(); ++j) to[i][j] += from[i][j];
    }
  }
  void add_gradient(int at, const Matrix& from) {
    for (size_t i = 0; i < from.size(); ++i) {
      for (size_t j = 0; j < from[0].size(); ++j)
        gradients[at + i * from[0].size() + j] += from[i][j];
    }
  }

  Matrix map(int index) const {
    Matrix m = zeros(c_.hidden, c_.columns);
    for (int out = 0; out < c_.hidden; ++out) {
      for (int in = 0; in < c_.columns; ++in) m[out][in] = weight(index, out, in);
    }
    return m;
  }

  void add_sample(int sample) {
    const Matrix s = input(sample);
    Matrix u = zeros(c_.nodes, c_.hidden), du = u;
    for (int i = 0; i < c_.nodes; ++i) {
      for (int k = 0; k < c_.hidden; ++k) {
        u[i][k] = slot_.folded[places_.constant + k];
        du[i][k] = slot_.errors[(sample * c_.nodes + i) * c_.hidden + k];
        gradients[places_.constant + k] += du[i][k];
      }
    }
    add(u, product(s, transposed(map(0))));
    add_gradient(places_.maps, product(transposed(du), s));
    Matrix ds = product(du, map(0));
    for (int head = 0; head < c_.heads; ++head) add_head(head, s, du, u, ds);
    for (int i = 0; i < c_.nodes; ++i) {
      const int row = sample * c_.nodes + i;
      for (int k = 0; k < c_.hidden; ++k) output[row * c_.hidden + k] = std::fmax(u[i][k], 0.0);
      for (int k = 0; k < c_.columns; ++k) {
        previous_errors[row * c_.columns + k] = s[i][k] > 0 ? ds[i][k] : 0;
      }
    }
  }

  void add_head(int head, const Matrix& s, const Matrix& du, Matrix& u, Matrix& ds) {
    const Matrix m = map(1 + head), a = attention(head, s), z = product(a, s);
    add(u, product(z, transposed(m)));
    add_gradient(places_.maps + (1 + head) * c_.hidden * c_.columns, product(transposed(du), z));
    const Matrix dz = product(du, m);
    add(ds, product(transposed(a), dz));
    const Matrix da = product(dz, transposed(s));
    if (!c_.from_data) {
      add_gradient(places_.attention + head * c_.nodes * c_.nodes, da);
      return;
    }
    Matrix dscores = da;
    for (int i = 0; i < c_.nodes; ++i) {
      double sum = 0;
      for (int j = 0; j < c_.nodes; ++j) sum += a[i][j] * da[i][j];
      for (int j = 0; j < c_.nodes; ++j) dscores[i][j] = a[i][j] * (da[i][j] - sum);
    }
    Matrix g = zeros(c_.columns, c_.columns);
    for (int i = 0; i < c_.columns; ++i) {
      for (int j = 0; j < c_.columns; ++j) g[i][j] = score(head, i, j);
    }
    const Matrix dt = product(dscores, s);
    add(ds, product(transposed(dscores), queries(head, s)));
    add(ds, product(dt, transposed(g)));
    add_gradient(places_.scores + head * c_.columns * c_.columns, product(transposed(s), dt));
    for (int i = 0; i < c_.nodes; ++i) {
      for (int k = 0; k < c_.columns; ++k) {
        gradients[places_.score_bias + head * c_.columns + k] += dt[i][k];
      }
    }
  }

  const Case& c_;
  const Slot& slot_;
  const Places places_;
};

}  // namespace posattn::cuda::large
