// x1 += A y1, x2 += A^T y2
void kernel_mvt(float x1[400], float x2[400], float y1[400], float y2[400], float A[400][400]) {
  for (int i = 0; i < 400; i++)
    for (int j = 0; j < 400; j++) x1[i] += A[i][j] * y1[j];
  for (int i = 0; i < 400; i++)
    for (int j = 0; j < 400; j++) x2[i] += A[j][i] * y2[j];
}
