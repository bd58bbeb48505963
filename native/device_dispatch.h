#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_compact.h"
#include "device_timeline.h"

namespace regal {

// Runs a placement from event to event: whenever a device is free it takes, of the ops that can
// start, the one with the highest key; whenever a link is free it sends, of the tensors that are
// ready, the one with the highest key. Ties go to the lower number.
class Dispatcher {
 public:
  explicit Dispatcher(const CompactDevices& problem);

  // Fills a cleared timeline. Graph inputs lie where their reader with the highest key runs.
  void run(std::span<const int32_t> placement, std::span<const uint32_t> op_keys,
           std::span<const uint32_t> tensor_keys, Timeline& timeline);

 private:
  enum class Kind : int32_t { OpEnds, SendEnds, ControlArrives };
  struct Event {
    int64_t time;
    Kind kind;
    int32_t id;  // op that ends, started send, op that waits for the control edge
    bool operator<(const Event& other) const { return time > other.time; }
  };

  void appear(int32_t tensor, int32_t device);
  void arrive(int32_t tensor, int32_t device);
  void get(int32_t op);
  void handle(const Event& event);
  void start_all(Timeline& timeline);
  void schedule(Event event);

  const CompactDevices* problem_;
  int32_t n_devices_;
  std::span<const int32_t> placement_;
  std::span<const uint32_t> op_keys_;
  std::span<const uint32_t> tensor_keys_;
  const Timeline* timeline_ = nullptr;
  int64_t now_ = 0;
  std::vector<int32_t> waits_;                     // per op: tensors and control edges not here yet
  std::vector<std::vector<uint64_t>> ready_ops_;   // per device: heap
  std::vector<std::vector<uint64_t>> ready_sends_; // per link: heap
  std::vector<uint8_t> is_busy_;                   // per device
  std::vector<uint8_t> link_is_busy_;
  std::vector<int32_t> idle_devices_;              // to be looked at once this instant is over
  std::vector<int32_t> idle_links_;
  std::vector<int32_t> last_target_;               // per device: tensor that was last meant for it
  std::vector<Event> events_;
};

}  // namespace regal
