#include "core/steps/step_form.h"

namespace tfrfast {

std::string zero_of(StepForm form) {
  switch (form) {
    case StepForm::bytes:
      return {'\x0a', '\0'};
    case StepForm::packed_floats:
      return std::string(4, '\0');
    case StepForm::floats:
      return {'\x0d', '\0', '\0', '\0', '\0'};
    case StepForm::packed_ints:
      return {'\0'};
    default:
      return {'\x08', '\0'};
  }
}

}  // namespace tfrfast
