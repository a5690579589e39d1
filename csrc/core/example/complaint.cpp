#include "core/example/complaint.h"

#include "core/base/error.h"

namespace tfrfast {
namespace {

RecordOrigin origin_of(const RecordPlace& place) {
  const std::string number = std::to_string(place.record);
  RecordOrigin origin{"Record " + number, {}, place.record};
  if (*place.find_origin) origin = (*place.find_origin)(place.record);
  if (origin.record != place.record) origin.text += " (number " + number + " of all)";
  return origin;
}

[[noreturn]] void complain(const RecordPlace& place, const std::string& what,
                           const std::string& advice) {
  RecordOrigin origin = origin_of(place);
  throw Error(ErrorKind::feature, what + " " + origin.text + ". " + advice,
              {std::move(origin.path), origin.record, {}});
}

std::string shape_of(const FeatureSpec& spec) {
  std::string text = spec.layout == &kPaddedLayout ? "[?" : "[";
  for (const std::int64_t size : spec.shape) {
    if (text.size() > 1) text += ',';
    text += std::to_string(size);
  }
  return text + "]";
}

std::string quoted(const FeatureSpec& spec) {
  return "Feature '" + spec.name + "'";
}

// Advice for a feature that was inferred from other records, or else `advice`.
const char* advice_for(const FeatureSpec& spec, const char* advice) {
  if (!spec.inferred) return advice;
  return "The features were inferred from a sample of the records. Give a dict of specs, or let "
         "sample=None look at all records: features=tfr.infer_features(..., sample=None).";
}

const char* advice_for(RecordKind kind) {
  switch (kind) {
    case RecordKind::sequence_example:
      return "tfr.parse_sequence_example parses it, and tfr.Steps reads its steps; with a dict of "
             "specs, its context alone is parsed.";
    case RecordKind::event:
      return "tfr.Message.event() has its fields as features. Or give the shards that hold "
             "Examples, "
             "without this one.";
    default:
      return "Give the shards that hold Examples; tfr.Message parses other messages, and a Reader "
             "gives the bytes of any record.";
  }
}

}  // namespace

void complain_no_example(const RecordPlace& place, RecordKind found) {
  RecordOrigin origin = origin_of(place);
  throw Error(
      ErrorKind::feature,
      origin.text + " holds " + name_of(found) + ", not a tf.train.Example. " + advice_for(found),
      {std::move(origin.path), origin.record, {}});
}

void complain_no_message(const RecordPlace& place, const std::string& message,
                         std::size_t record_offset, const char* why) {
  complain(place,
           "Could not parse the record: the field at byte " + std::to_string(record_offset) + " " +
               why + " a message " + message + ".",
           "Check that these records are of this message, and that none is damaged.");
}

void complain_malformed(const RecordPlace& place, std::size_t record_offset) {
  complain(place,
           "Could not parse the record: byte " + std::to_string(record_offset) +
               " does not fit a tf.train.Example.",
           "Check that these records are serialized Examples, and not SequenceExamples or another "
           "format.");
}

void complain_too_long(const RecordPlace& place, std::size_t record_bytes) {
  complain(place,
           "Could not parse the record: it has " + std::to_string(record_bytes) +
               " bytes, and a protobuf message ends before 2 GiB.",
           "Read it without a feature description.");
}

void complain_missing(const RecordPlace& place, const FeatureSpec& spec) {
  complain(place,
           "Feature: " + spec.name + " (data type: " + name_of(list_kind_of(spec.type)) +
               ") is required but could not be found.",
           advice_for(spec,
                      "Give the feature a default, or ask for it as VarLen if it may be "
                      "missing."));
}

void complain_no_list(const RecordPlace& place, const FeatureSpec& spec) {
  complain(place,
           quoted(spec) +
               ": unsupported data type. Its bytes are neither a bytes_list, a "
               "float_list nor an int64_list.",
           "The record is damaged, or is not a tf.train.Example.");
}

void complain_kind(const RecordPlace& place, const FeatureSpec& spec, ListKind found) {
  complain(place,
           quoted(spec) + ": Data types don't match. Data type: " + name_of(found) +
               " but expected type: " + name_of(list_kind_of(spec.type)) + ".",
           advice_for(spec, "Ask for the type that the records hold; infer_features() shows it."));
}

void complain_mixed(const RecordPlace& place, const FeatureSpec& spec, ListKind before,
                    ListKind found) {
  complain(place,
           quoted(spec) + ": Data types don't match. Data type: " + name_of(found) +
               " but earlier records have " + name_of(before) + ".",
           "No one description fits these records.");
}

void complain_length(const RecordPlace& place, const FeatureSpec& spec, std::size_t found,
                     std::size_t counted) {
  complain(place,
           quoted(spec) + ": the record has " + std::to_string(found) + " values, and " +
               std::to_string(counted) + " were counted.",
           "Name the features that have the counted length in every record, as in "
           "lengths=[\"ids\"], and leave no lengths of other data.");
}

void complain_image(const RecordPlace& place, const FeatureSpec& spec, const std::string& problem) {
  complain(place, quoted(spec) + ": the image cannot be decoded: " + problem + ".",
           "Write the image again, or take damaged images as grey ones: "
           "tfr.Image(..., damaged=\"grey\").");
}

void complain_misfit(const RecordPlace& place, const CompiledFeature& feature, Fit fit,
                     const ColumnBuilder& column) {
  if (fit == Fit::bad_image) complain_image(place, feature.spec, column.problem());
  if (fit != Fit::bad_tensor) complain_count(place, feature, fit, column.found());
  complain(place, quoted(feature.spec) + ": the tensor cannot be read: " + column.problem() + ".",
           "Ask for the type and shape with which tf.io.serialize_tensor was called, or for the "
           "string: tfr.FixedLen((), \"bytes\").");
}

void complain_count(const RecordPlace& place, const CompiledFeature& feature, Fit fit,
                    std::int64_t found) {
  const FeatureSpec& spec = feature.spec;
  const std::string value = std::to_string(found);
  switch (fit) {
    case Fit::wrong_count:
      complain(place,
               quoted(spec) + ": Number of " + name_of(feature.kind) +
                   (spec.layout == &kPaddedLayout ? " values is not a multiple of "
                                                  : " values != expected ") +
                   std::to_string(feature.row_values) + ". Values size: " + value +
                   " but output shape: " + shape_of(spec) + ".",
               spec.image ? "Ask for as many pictures as a row has: tfr.Image(frames=...), the "
                            "number of steps in a window."
                          : advice_for(spec,
                                       "Ask for the shape that the records have, or for "
                                       "VarLen."));
    case Fit::out_of_range:
      complain(
          place,
          quoted(spec) + ": the value " + value + " does not fit in " + name_of(spec.type) + ".",
          "Ask for int64, or a type wide enough.");
    case Fit::wrong_size:
      complain(place,
               quoted(spec) + ": expected a byte string of " + std::to_string(spec.raw_bytes) +
                   " bytes, found one of " + value + ".",
               "Raw bytes must fill the shape exactly: ask for the shape and dtype they were "
               "written with.");
    case Fit::malformed:
    case Fit::not_alone:
    case Fit::bad_image:
    case Fit::bad_tensor:
    case Fit::ok:
      break;
  }
  complain(place,
           quoted(spec) + ": Can't parse serialized Example: the bytes of its " +
               name_of(feature.kind) + " list end early or are of another kind.",
           "The record is damaged, or is not a tf.train.Example.");
}

}  // namespace tfrfast
