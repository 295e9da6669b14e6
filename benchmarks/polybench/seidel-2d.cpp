// A hundred times the mean of a point and its eight neighbours, in place.
void kernel_seidel_2d(float A[400][400]) {
  for (int t = 0; t < 100; t++)
    for (int i = 1; i < 399; i++)
      for (int j = 1; j < 399; j++)
        A[i][j] = (A[i - 1][j - 1] + A[i - 1][j] + A[i - 1][j + 1] + A[i][j - 1] + A[i][j] + A[i][j + 1] +
                   A[i + 1][j - 1] + A[i + 1][j] + A[i + 1][j + 1]) / 9.0f;
}
