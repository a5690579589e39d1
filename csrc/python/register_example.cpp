#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/choice.h"
#include "core/base/error.h"
#include "core/base/waiting.h"
#include "core/example/count_lengths.h"
#include "core/example/decode.h"
#include "core/example/record_kind.h"
#include "core/example/sequence.h"
#include "core/example/survey.h"
#include "core/image/image_codec.h"
#include "core/order/ranges.h"
#include "python/arrays.h"
#include "python/byte_view.h"
#include "python/classes.h"
#include "python/columns.h"
#include "python/python_reader.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// Lines of shift, factor, base, low and high; and whether padding stays as it is.
using GivenScaling = std::pair<std::vector<std::array<double, 5>>, bool>;

// The number of TensorFlow's type, and the shape.
using GivenTensor = std::pair<std::uint32_t, std::vector<std::int64_t>>;

FeatureSpec make_spec(const std::string& name, const std::string& layout, const std::string& type,
                      const std::vector<std::int64_t>& shape,
                      const std::optional<py::bytes>& default_numbers,
                      const std::optional<std::vector<py::bytes>>& default_strings,
                      std::size_t raw_bytes, bool required, bool inferred,
                      const std::optional<ImageSpec>& image, std::size_t budget,
                      const std::optional<GivenScaling>& scaling,
                      const std::optional<MessagePath>& path,
                      const std::optional<GivenTensor>& tensor) {
  FeatureSpec spec;
  spec.name = name;
  spec.layout = &layout_named(layout);
  spec.type = value_type_named(type);
  spec.shape = shape;
  spec.raw_bytes = raw_bytes;
  spec.required = required;
  spec.inferred = inferred;
  spec.image = image;
  spec.budget = budget;
  if (scaling) {
    spec.scaling.emplace().keeps_padding = scaling->second;
    for (const auto& [shift, factor, base, low, high] : scaling->first) {
      spec.scaling->lines.push_back({shift, factor, base, low, high});
    }
  }
  spec.path = path;
  if (tensor) spec.tensor = TensorForm{tensor->first, tensor->second};
  if (default_numbers || default_strings) spec.default_value.emplace();
  if (default_numbers) {
    const auto bytes = static_cast<std::string_view>(*default_numbers);
    spec.default_value->numbers.assign(bytes.begin(), bytes.end());
  }
  if (default_strings) {
    for (const py::bytes& string : *default_strings) {
      spec.default_value->strings.emplace_back(string);
    }
  }
  return spec;
}

MessageField make_field(std::uint32_t number, unsigned type, bool repeated, bool checks_utf8,
                        bool is_closed,
                        const std::vector<std::pair<std::int32_t, std::string>>& names,
                        const std::vector<MessageField>& oneof,
                        const std::vector<MessageField>& entry) {
  check_range("type", static_cast<std::int64_t>(type), 1,
              static_cast<std::int64_t>(FieldType::sint64));
  MessageField field{
      number, static_cast<FieldType>(type), repeated, checks_utf8, is_closed, {}, oneof, entry};
  for (const auto& [of, name] : names) field.names.push_back({of, name});
  return field;
}

MessagePath make_path(const std::string& message, const std::vector<MessageField>& fields,
                      const std::string& content) {
  constexpr Choice<PathContent> kContents[] = {{"values", PathContent::values},
                                               {"names", PathContent::names},
                                               {"presence", PathContent::presence}};
  return {message, fields, choose("content", content, kContents)};
}

ImageSpec make_image(std::uint32_t height, std::uint32_t width, std::uint32_t channels,
                     const std::string& crop, const std::array<double, 2>& area,
                     const std::array<double, 2>& ratio, bool flip, const std::string& resize,
                     bool is_float, bool channels_first, bool upright, bool grey_if_damaged,
                     std::uint64_t max_pixels, std::uint32_t frames, bool draws_each) {
  // NaN and numbers out of range become 0, which check() refuses.
  const auto fixed = [](double value) {
    return value > 0 && value < 1e6 ? static_cast<Fixed32>(std::llround(std::ldexp(value, 32))) : 0;
  };
  ImageSpec spec;
  spec.height = height;
  spec.width = width;
  spec.channels = channels;
  spec.crop = crop_named(crop);
  spec.min_area = fixed(area[0]);
  spec.max_area = fixed(area[1]);
  spec.min_ratio = fixed(ratio[0]);
  spec.max_ratio = fixed(ratio[1]);
  spec.flips = flip;
  spec.resize = resize_named(resize);
  spec.is_float = is_float;
  spec.channels_first = channels_first;
  spec.turns_upright = upright;
  spec.grey_if_damaged = grey_if_damaged;
  spec.max_pixels = max_pixels;
  spec.frames = frames;
  spec.draws_each = draws_each;
  check(spec);
  return spec;
}

// The records of a list of bytes. `keeper` keeps the records alive and unchanged.
std::vector<WireBytes> records_of(const py::iterable& list, py::object& keeper) {
  const auto tuple =
      py::reinterpret_steal<py::tuple>(call_python([&] { return PySequence_Tuple(list.ptr()); }));
  if (!tuple) throw py::error_already_set();
  keeper = tuple;
  std::vector<WireBytes> records;
  records.reserve(tuple.size());
  for (const py::handle item : tuple) {
    if (!PyBytes_Check(item.ptr())) {
      throw py::type_error("a serialized record must be bytes, not " +
                           py::str(py::type::handle_of(item).attr("__name__")).cast<std::string>());
    }
    records.push_back(bytes_of(item));
  }
  return records;
}

[[noreturn]] void throw_one_number_each() {
  throw Error(ErrorKind::invalid, "There must be one record number for each record.");
}

using Bytes = ExactNumbers<std::uint8_t>;
using Int64s = Numbers<std::int64_t>;
using Words = ExactNumbers<std::uint64_t>;

// The records of a user's arrays. No decoder relies on reading the same bytes twice.
std::vector<WireBytes> records_of(const Bytes& data, const Int64s& offsets) {
  const ByteStrings strings("Record", data, offsets);
  std::vector<WireBytes> records(strings.size());
  for (std::size_t i = 0; i < records.size(); ++i) records[i] = strings[i];
  return records;
}

// Decoders that no thread uses. Each remembers the order of features and the sizes of batches. The
// GIL is the lock: a forked child could inherit a held mutex.
template <class Decoder>
class IdleDecoders {
 public:
  // Null if no decoder is idle.
  std::unique_ptr<Decoder> take() {
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Decoder> decoder = std::move(idle_.back());
    idle_.pop_back();
    return decoder;
  }
  void put(std::unique_ptr<Decoder> decoder) { idle_.push_back(std::move(decoder)); }

 private:
  std::vector<std::unique_ptr<Decoder>> idle_;
};

// The common part of the two parsers: the two forms of records, and decoding without the GIL.
// `Derived` makes decoders and converts their results for Python.
template <class Derived, class Decoder>
class Parser {
 public:
  py::object parse(const py::iterable& serialized) {
    py::object keeper;
    return decode(records_of(serialized, keeper), {});
  }

  py::object parse_flat(const Bytes& data, const Int64s& offsets, const Int64s& record_numbers) {
    const std::vector<WireBytes> records = records_of(data, offsets);
    return decode(records, numbers_of(record_numbers, records.size()));
  }

 protected:
  static std::span<const std::int64_t> numbers_of(const Int64s& record_numbers,
                                                  std::size_t records) {
    if (span_of(record_numbers).size() != records) throw_one_number_each();
    return span_of(record_numbers);
  }

  // `draws` are the draws of images, for a decoder that takes them.
  template <class... Draws>
  py::object decode(const std::vector<WireBytes>& records, std::span<const std::int64_t> numbers,
                    Draws... draws) {
    auto& derived = static_cast<Derived&>(*this);
    std::unique_ptr<Decoder> decoder = idle_.take();
    auto columns = [&] {
      const WithoutGil without_gil;
      if (decoder == nullptr) decoder = derived.make_decoder();
      decoder->begin(records.size());
      decoder->decode(records, numbers, draws...);
      return decoder->finish();
    }();
    idle_.put(std::move(decoder));
    return derived.convert(std::move(columns));
  }

 private:
  IdleDecoders<Decoder> idle_;
};

class ExampleParser : public Parser<ExampleParser, BatchDecoder> {
 public:
  explicit ExampleParser(std::shared_ptr<FeatureSchema> schema) : schema_(std::move(schema)) {}

  py::object parse_drawn(const Bytes& data, const Int64s& offsets, const Int64s& record_numbers,
                         const Words& draws) {
    const std::vector<WireBytes> records = records_of(data, offsets);
    return decode(records, numbers_of(record_numbers, records.size()), span_of(draws));
  }

  std::unique_ptr<BatchDecoder> make_decoder() const {
    return std::make_unique<BatchDecoder>(schema_);
  }
  py::object convert(std::vector<Column> columns) const {
    return to_python(std::move(columns), *schema_);
  }

 private:
  std::shared_ptr<const FeatureSchema> schema_;
};

class SequenceParser : public Parser<SequenceParser, SequenceDecoder> {
 public:
  SequenceParser(std::shared_ptr<FeatureSchema> context, std::shared_ptr<FeatureSchema> sequences)
      : context_(std::move(context)), sequences_(std::move(sequences)) {
    make_decoder();  // throws for features that cannot be decoded
  }

  std::unique_ptr<SequenceDecoder> make_decoder() const {
    return std::make_unique<SequenceDecoder>(context_, sequences_);
  }

  // Returns context columns and, for each sequence feature, the steps and the row splits of the
  // steps.
  py::object convert(SequenceColumns columns) const {
    py::list sequences;
    for (std::size_t slot = 0; slot < columns.sequences.size(); ++slot) {
      StepColumn& column = columns.sequences[slot];
      const auto rows = static_cast<py::ssize_t>(column.rows);
      const py::array row_splits = own<std::int64_t>(std::move(column.row_splits), {rows + 1});
      sequences.append(
          py::make_tuple(to_python(std::move(column.steps), (*sequences_)[slot]), row_splits));
    }
    return py::make_tuple(to_python(std::move(columns.context), *context_), sequences);
  }

 private:
  std::shared_ptr<const FeatureSchema> context_;
  std::shared_ptr<const FeatureSchema> sequences_;
};

class PythonSurvey {
 public:
  PythonSurvey(const PythonReader* reader, bool examples_alone)
      : source_(reader == nullptr ? nullptr : reader->get()),
        survey_(examples_alone, source_ == nullptr ? FindOrigin() : origins_in(source_)) {}

  void add(const py::iterable& serialized, const std::vector<std::int64_t>& numbers) {
    py::object keeper;
    const std::vector<WireBytes> records = records_of(serialized, keeper);
    if (numbers.size() != records.size()) throw_one_number_each();
    const WithoutGil without_gil;
    for (std::size_t i = 0; i < records.size(); ++i) survey_.add(records[i], numbers[i]);
  }

  // Adds the reader's records from `begin` to `end`. Ends early with Ctrl-C, and with the job.
  void read(std::uint64_t begin, std::uint64_t end) {
    constexpr std::uint64_t kBytesAtOnce = std::uint64_t{4} << 20;
    if (source_ == nullptr)
      throw Error(ErrorKind::invalid, "A Survey without a reader reads none.");
    const WithoutGil without_gil;
    while (begin < end) {
      if (WaitCheck* const check = wait_check()) check->check();
      const std::uint64_t stop = source_->range_end(begin, kBytesAtOnce, end - begin);
      const RecordSource::Range range = source_->read_range(begin, stop);
      for (std::size_t row = 0; row < range.batch->size(); ++row) {
        survey_.add((*range.batch)[row], range.batch->indices()[row]);
      }
      if (range.error) throw *range.error;
      begin = range.next;
    }
  }

  void add_later(const PythonSurvey& later) { survey_.add(later.survey_); }
  std::size_t num_records() const { return survey_.records(); }

  py::list features() const {
    py::list features;
    for (const auto& [name, seen] : survey_.features()) {
      features.append(py::make_tuple(py::bytes(name), name_of(seen.kind), seen.records,
                                     seen.min_values, seen.max_values));
    }
    return features;
  }

 private:
  std::shared_ptr<const RecordSource> source_;
  Survey survey_;
};

template <class Class>
void add_parse(py::class_<Class>& parser) {
  parser.def("parse", &Class::parse, py::arg("serialized"), "The columns of a list of bytes.")
      .def("parse_flat", &Class::parse_flat, py::arg("data"), py::arg("offsets"),
           py::arg("record_numbers"), "The columns of records that lie end to end.");
}

}  // namespace

void register_example(py::module_& module) {
  py::class_<ImageSpec>(module, "ImageSpec")
      .def(constructor(&make_image), py::kw_only(), py::arg("height"), py::arg("width"),
           py::arg("channels"), py::arg("crop"), py::arg("area"), py::arg("ratio"), py::arg("flip"),
           py::arg("resize"), py::arg("is_float"), py::arg("channels_first"), py::arg("upright"),
           py::arg("grey_if_damaged"), py::arg("max_pixels"), py::arg("frames"),
           py::arg("draws_each"));
  module.def(
      "count_lengths",
      [](const PythonReader& reader, const std::string& feature, std::int64_t begin,
         std::int64_t end, unsigned threads) {
        const std::shared_ptr<const RecordSource> source = reader.get();
        check_range("end", end, 0, static_cast<std::int64_t>(source->record_count()));
        check_range("begin", begin, 0, end);
        bool are_whole = true;
        const auto lengths = filled_array<std::uint32_t>(
            static_cast<std::size_t>(end - begin), [&](std::uint32_t* out) {
              are_whole = count_lengths(*source, feature, begin, end, threads, out);
            });
        return py::make_tuple(lengths, are_whole);
      },
      py::arg("reader"), py::arg("feature"), py::arg("begin"), py::arg("end"), py::arg("threads"));
  py::class_<MessageField>(module, "MessageField", "A field of a protobuf message.")
      .def(constructor(&make_field), py::arg("number"), py::arg("type"), py::arg("repeated"),
           py::arg("checks_utf8"), py::arg("is_closed"), py::arg("names"), py::arg("oneof"),
           py::arg("entry"));
  py::class_<MessagePath>(module, "MessagePath", "The way to a field of a protobuf message.")
      .def(constructor(&make_path), py::arg("message"), py::arg("fields"), py::arg("content"));
  py::class_<FeatureSpec>(module, "FeatureSpec")
      .def(constructor(&make_spec), py::kw_only(), py::arg("name"), py::arg("layout"),
           py::arg("type"), py::arg("shape"), py::arg("default_numbers"),
           py::arg("default_strings"), py::arg("raw_bytes"), py::arg("required"),
           py::arg("inferred"), py::arg("image"), py::arg("budget"), py::arg("scaling"),
           py::arg("path"), py::arg("tensor"));
  module.attr("DECODES_IMAGES") = has_image_codecs();
  module.attr("INTEGER_TYPES") = py::tuple(py::cast(names_of_value_types(ListKind::ints)));

  // Not const, because pybind11 holds no pointers to const. Never changed.
  py::class_<FeatureSchema, std::shared_ptr<FeatureSchema>>(module, "FeatureSchema",
                                                            "A compiled feature description.")
      .def(constructor<FeatureSchema, std::vector<FeatureSpec>>(), py::arg("specs"))
      .def("encode", [](const FeatureSchema& self) { return py::bytes(self.encode()); });

  py::class_<ExampleParser> examples(
      module, "ExampleParser",
      "Decodes serialized Examples to columns, by a compiled feature description.");
  examples.def(constructor<ExampleParser, std::shared_ptr<FeatureSchema>>(), py::arg("schema"));
  add_parse(examples);
  examples.def("parse_drawn", &ExampleParser::parse_drawn, py::arg("data"), py::arg("offsets"),
               py::arg("record_numbers"), py::arg("draws"),
               "As parse_flat, with the draw of each record's images from Plan.draws().");

  py::class_<SequenceParser> sequences(
      module, "SequenceParser",
      "Decodes serialized SequenceExamples to columns, by two compiled feature descriptions.");
  sequences.def(
      constructor<SequenceParser, std::shared_ptr<FeatureSchema>, std::shared_ptr<FeatureSchema>>(),
      py::arg("context"), py::arg("sequences"));
  add_parse(sequences);

  module.def(
      "record_kind", [](const py::bytes& record) { return name_of(kind_of(bytes_of(record))); },
      py::arg("record"), "What a record holds, as in \"a tf.train.Example\".");
  py::class_<PythonSurvey>(module, "Survey", "What the features of Examples hold.")
      .def(constructor<PythonSurvey, const PythonReader*, bool>(), py::arg("reader") = nullptr,
           py::kw_only(), py::arg("examples_alone") = true)
      .def("add", &PythonSurvey::add, py::arg("records"), py::arg("numbers"))
      .def("read", &PythonSurvey::read, py::arg("begin"), py::arg("end"))
      .def("add_later", &PythonSurvey::add_later, py::arg("later"))
      .def_property_readonly("num_records", &PythonSurvey::num_records)
      .def("features", &PythonSurvey::features,
           "For each feature: (name, list kind, records that have it, smallest and largest number "
           "of values).");
}

}  // namespace tfrfast::python
