#include "posattn/training/batches.h"
#include "posattn/training/cuda/fleet_slot.h"
#include "posattn/training/run.h"

namespace posattn::cuda {

FleetSlot::FleetSlot(const DeviceRun& run, std::vector<SetPlace> sets)
    : config_(run.config),
      sets_(std::move(sets)),
      optimiser_(optimiser_options(config_)),
      active_(run.state.epoch < config_.epochs),
      epoch_(run.state.epoch),
      step_(run.state.optimiser.step),
      seconds_(run.state.seconds),
      first_seconds_(run.state.seconds),
      schedule_state_(run.state.schedule),
      validation_loss_(run.state.validation_loss),
      best_validation_loss_(run.state.best_validation_loss) {
  for (const SetPlace& set : sets_) steps_ += ceil_div(set.samples, config_.batch);
  schedule_ = schedule_options(config_, steps_);
}

bool FleetSlot::validates_next() const {
  return RunEvaluation::validation_due(config_, epoch_ + 1);
}

void FleetSlot::plan_epoch(const ModelSpec& spec, StepPlan* plans) const {
  std::vector<int64_t> set_samples;
  for (const SetPlace& set : sets_) set_samples.push_back(set.samples);
  int64_t step = step_;
  for (const BatchSlice& batch :
       epoch_slices(set_samples, config_.batch, config_.data_seed_used(), epoch_ + 1)) {
    const SetPlace& set = sets_[batch.set];
    const auto samples = static_cast<int32_t>(batch.end - batch.begin);
    StepPlan& plan = *plans++;
    plan.step.samples = samples;
    plan.step.real_nodes = set.real_nodes;
    plan.step.loss_scale = static_cast<float>(
        1 / (static_cast<double>(samples) * spec.nodes_read(set.real_nodes) * spec.output_columns));
    plan.step.seed = config_.data_seed_used();
    plan.step.number = static_cast<uint32_t>(step);
    plan.clip = static_cast<float>(config_.clip);
    const double lr = learning_rate(schedule_, schedule_state_, step);
    plan.clip_relative = relative_clip(optimiser_, config_.clip_relative, step + 1);
    plan.adam = adam_numbers<float>(optimiser_, lr, ++step);
    plan.decays_maps_only = optimiser_.decay == Decay::maps ? 1 : 0;
    plan.order = set.order + batch.begin;
    plan.rows = set.rows;
  }
}

EpochEnd FleetSlot::close_epoch(const SlotCursor& cursor, double seconds) {
  EpochEnd end;
  const auto diverge = [&](NotFinite what) {
    end.divergence =
        divergence_message(what, cursor.bad_loss, step_ + cursor.bad_position, epoch_ + 1);
    active_ = false;
    return end;
  };
  if (cursor.bad_position > 0) return diverge(NotFinite::loss);
  if (cursor.bad_weights != 0) return diverge(NotFinite::weight);
  if (cursor.bad_squares != 0) return diverge(NotFinite::squared_gradient);
  step_ += steps_;
  end.record.epoch = ++epoch_;
  end.record.step = step_;
  end.record.train_loss = cursor.summed_loss / static_cast<double>(steps_);
  end.record.lr = learning_rate(schedule_, schedule_state_, step_ - 1);
  end.record.seconds = seconds_ = first_seconds_ + seconds;
  after_epoch(schedule_, cursor.summed_loss, schedule_state_);
  active_ = active_ && has_epoch(epoch_ + 1);
  return end;
}

void FleetSlot::describe(RunState& state) const {
  state.epoch = epoch_;
  state.optimiser.step = step_;
  state.seconds = seconds_;
  state.schedule = schedule_state_;
  state.validation_loss = validation_loss_;
  state.best_validation_loss = best_validation_loss_;
}

}  // namespace posattn::cuda
