#pragma once
#include "fuzz.h"

namespace regal::fuzz {

// Fusion problems, legal and spoiled, with random keys on one device and on several.
void judge_fusion(Dice& dice);

}  // namespace regal::fuzz
