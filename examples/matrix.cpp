// A dense matrix: something to complete in.

#include <cstddef>
#include <stdexcept>
#include <vector>

class Matrix {
 public:
  Matrix(std::size_t rows, std::size_t columns) : rows_(rows), columns_(columns), data_(rows * columns) {}

  double& at(std::size_t row, std::size_t column) {
    if (row >= rows_ || column >= columns_) {
      
    }
    return data_[row * columns_ + column];
  }

  Matrix transposed() const {
    Matrix result(columns_, rows_);
    for (std::size_t row = 0; row < rows_; ++row) {
      for (std::size_t column = 0; column < columns_; ++column) {
        result.at(column, row) = 
      }
    }
    return result;
  }

  double sum() const {
    double total = 0;
    for (double value : data_) 
    return total;
  }

 private:
  std::size_t rows_;
  std::size_t columns_;
  std::vector<double> data_;
};
